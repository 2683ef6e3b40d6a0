"""One run of the profiler, from its inputs to its results.

`search` finds the engines, then a choice is made, by predictions (`best`) or by measuring (`online`), and
`results` writes its documents. Each calls `on_step` with its progress.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE
from dynamo_profiler import Refusal
from dynamo_profiler.base import BACKENDS, FRONTEND, PLANNER, Backend, base_graph
from dynamo_profiler.candidates import Candidate, candidates
from dynamo_profiler.choice import Answer, Choice, Role, cheapest, decode_role, fitting_engines, prefill_role
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.engine import Engine
from dynamo_profiler.kernels import Source, short, source_of
from dynamo_profiler.planner import (
    DATA,
    data_config_map,
    decode_curve,
    mocked_graph,
    planner_service,
    prefill_curve,
)
from dynamo_profiler.shape import Shape, model_named, shape_of
from dynamo_profiler.workers import graph_in, mode_of, with_choice
from kube_runtime.types.meta import Fields, Object


class Phase(Enum):
    """The phases in order."""

    INITIALIZING = "Initializing"
    SWEEPING_PREFILL = "SweepingPrefill"
    SWEEPING_DECODE = "SweepingDecode"
    SELECTING_CONFIG = "SelectingConfig"
    BUILDING_CURVES = "BuildingCurves"
    GENERATING_DGD = "GeneratingDGD"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class Progress:
    """One step in one line."""

    phase: Phase
    message: str


OnStep: TypeAlias = Callable[[Progress], object]

_MAX_NAME_LENGTH = 40
_MARGINS = (0.25, 0.5, 1.0, 2.0)
"""Margins with which candidates are chosen. Source: docs/profiler-accuracy.md has errors up to 200 %."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a run beside its configuration.

    `base` is None for the profiler's own base graph, `model_config` if only the model's name is known. `name`
    is that of the request; empty if there is none.
    """

    base: Sequence[object] | None = None
    model_config: Fields | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """The documents of each file, the choice in them, and all candidates."""

    answer: Answer
    files: dict[str, list[Object]]
    considered: tuple[Candidate, ...]

    @property
    def choice(self) -> Choice:
        """The choice in the documents."""
        return self.answer.choice


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The engines with memory for the model, the cheapest ones of each role, and the parts of a graph.

    `base` is None for the profiler's own base graph. `has_weights`: the folder of the mounted model has its
    `config.json`. `prefill` or `decode` is None if no engine meets its target.
    """

    configuration: Configuration
    shape: Shape
    backend: Backend
    base: Object | None
    name: str
    engines: tuple[Engine, ...]
    prefill: Role | None
    decode: Role | None
    has_weights: bool = False

    def graph(self, choice: Choice) -> Object:
        """The graph with these workers, without a planner.

        Raises:
            Refusal: a worker of the base graph is of a form that the profiler cannot change.
        """
        configuration, base = self.configuration, self.base
        if base is None:
            name = self.name
            if not name:
                model = configuration.model.lower().rpartition("/")[2]
                short = _NOT_IN_NAMES.sub("-", model).strip("-")[:_MAX_NAME_LENGTH].strip("-")
                name = f"{short or 'model'}-{choice.mode.value}"
            is_apart = choice.mode is Mode.DISAGGREGATED
            base = base_graph(self.backend, name, configuration.image, is_disaggregated=is_apart)
        return with_choice(base, self.backend, choice, configuration, has_weights=self.has_weights)

    def curves(self, choice: Choice, name: str = DATA) -> Object:
        """The ConfigMap with the curves of these workers, for the planner and for simulated engines."""
        configuration = self.configuration
        longest = configuration.longest_context or self.shape.longest_context
        longest = longest or configuration.targets.isl + configuration.targets.osl
        return data_config_map(
            prefill_curve(choice.roles[0].engine, longest, configuration.prefill_points),
            decode_curve(choice.roles[-1].engine, longest, configuration.decode_points),
            name,
        )


def profile(configuration: Configuration, inputs: Inputs, on_step: OnStep) -> Results:
    """The documents of the best graph by predictions.

    Raises:
        Refusal: a value is invalid, or the targets cannot be met.
    """
    space = search(configuration, inputs, on_step)
    return results(space, best(space), on_step)


def search(configuration: Configuration, inputs: Inputs, on_step: OnStep) -> SearchSpace:
    """The engines with memory for the model.

    Raises:
        Refusal: a value is invalid, or no engine has enough memory.
    """
    backend = BACKENDS[configuration.backend]
    listed = model_named(configuration.model)
    config = inputs.model_config or (listed.config if listed else None)
    shape = shape_of(configuration.model, config, configuration.billions)
    base = graph_in(inputs.base) if inputs.base is not None else None
    configuration = replace(configuration, mode=_mode(configuration, base, backend))
    hardware, targets = configuration.hardware, configuration.targets
    of_model = (shape, hardware.gpu, config, configuration.backend)
    source = source_of(configuration.engine, *of_model)
    longest = configuration.longest_context or shape.longest_context
    need = targets.isl + targets.osl
    if longest and need > longest:
        raise Refusal(f"sla.isl and sla.osl make {need} tokens, but the model accepts at most {longest}")
    try:
        engines = fitting_engines(shape, hardware, targets, source.engine)
    except Refusal as error:
        if configuration.engine != "auto" or source.name == "formulas":
            raise
        # The database has no table for any possible layout.
        source = replace(source_of("formulas", *of_model), note=short(error))
        engines = fitting_engines(shape, hardware, targets, source.engine)
    on_step(Progress(Phase.INITIALIZING, _assumptions(configuration, shape, source)))
    on_step(Progress(Phase.SWEEPING_PREFILL, f"{len(engines)} layouts of engines by {source.name}"))
    prefill = prefill_role(engines, configuration)
    on_step(Progress(Phase.SWEEPING_DECODE, f"{len(engines)} layouts of engines by {source.name}"))
    decode = decode_role(engines, configuration)
    return SearchSpace(
        *(configuration, shape, backend, base, inputs.name, engines, prefill, decode),
        has_weights=inputs.model_config is not None,
    )


def results(space: SearchSpace, answer: Answer, on_step: OnStep) -> Results:
    """The documents of its choice.

    Raises:
        Refusal: a worker of the base graph or an option of the planner is invalid.
    """
    configuration, choice = space.configuration, answer.choice
    on_step(Progress(Phase.SELECTING_CONFIG, answer.text()))
    data = space.curves(choice)
    on_step(Progress(Phase.BUILDING_CURVES, "curves for the planner and the simulated engines"))
    graph = space.graph(choice)
    mocked = mocked_graph(graph["metadata"]["name"], configuration, space.backend, choice)
    plain = [graph]
    if configuration.planner is not None:
        _add_planner(graph, configuration, choice)
        plain = [data, graph]
    on_step(Progress(Phase.GENERATING_DGD, f"graph {graph['metadata']['name']}"))
    files = {RESULTS_FILE: plain, MOCKED_RESULTS_FILE: [data, mocked]}
    return Results(answer, files, candidates(space.engines, space.prefill, answer, configuration))


def best(space: SearchSpace) -> Answer:
    """The cheapest choice with the margin; without one if no choice has it and none is configured.

    Raises:
        Refusal: not even the predictions meet the targets, or only with more GPUs or replicas than allowed.
    """
    configuration = space.configuration
    without_margin = replace(configuration, margin=0)
    try:
        choice = cheapest(space.engines, configuration, (space.prefill, space.decode))
    except Refusal as error:
        if configuration.margin is not None:
            raise
        return Answer(cheapest(space.engines, without_margin), no_margin=str(error))
    exact = cheapest(space.engines, without_margin)
    return Answer(choice, exact if exact.gpus < choice.gpus else None)


def to_measure(space: SearchSpace, limit: int) -> tuple[Choice, ...]:
    """At most `limit` choices to measure, cheapest first, with margins from the configured one to 200 %.

    Of more choices than `limit`, the cheapest and the most expensive are among them.

    Raises:
        Refusal: not even the predictions meet the targets.
    """
    configuration = space.configuration
    smallest = configuration.margin or 0.0
    modes = [configuration.mode] if configuration.mode else list(Mode)
    choices: dict[object, Choice] = {}
    for margin in (smallest, *(margin for margin in _MARGINS if margin > smallest)):
        for mode in modes:
            with suppress(Refusal):
                choice = cheapest(space.engines, replace(configuration, margin=margin, mode=mode))
                choices.setdefault(choice.workers, choice)
    if not choices:
        return (cheapest(space.engines, replace(configuration, margin=smallest)),)
    ordered = sorted(choices.values(), key=lambda choice: (choice.gpus, -choice.rate))
    if len(ordered) <= limit:
        return tuple(ordered)
    steps = max(limit - 1, 1)
    return tuple(ordered[round(at * (len(ordered) - 1) / steps)] for at in range(limit))


def _mode(configuration: Configuration, base: Object | None, backend: Backend) -> Mode | None:
    """The requested mode, that of the base graph, or the one that a planner needs. None if any will do."""
    made_for = mode_of(base, backend) if base is not None else None
    if made_for and configuration.mode and made_for is not configuration.mode:
        raise Refusal(
            f"analytic.mode is {configuration.mode.value}, but the base graph is made for {made_for.value}"
        )
    mode = configuration.mode or made_for
    if configuration.planner is None:
        return mode
    if mode is Mode.AGGREGATED:
        raise Refusal("a planner needs separate workers for prefill and decode; remove `planner`")
    return Mode.DISAGGREGATED


def _assumptions(configuration: Configuration, shape: Shape, source: Source) -> str:
    gpu, bits = configuration.hardware.gpu.name, 8 * shape.bytes_per_parameter
    assumed = " (assumed: the request names no GPU)" if configuration.hardware.is_assumed else ""
    because = f", because {source.note}" if source.note else ""
    return (
        f"{configuration.model}, {shape.parameters / 1e9:.4g} billion parameters of {bits:g} bits, on {gpu}"
        f"{assumed}; predicted by {source.name}{because}, not measured"
    )


def _add_planner(graph: Object, configuration: Configuration, choice: Choice) -> None:
    # In place of one in the base graph.
    services = graph["spec"]["services"]
    kinds = {service.get("componentType"): key for key, service in services.items()}
    frontend = services.get(kinds.get("frontend", FRONTEND), {})
    image = ((frontend.get("extraPodSpec") or {}).get("mainContainer") or {}).get("image")
    service = planner_service(
        configuration, choice, image or BACKENDS["vllm"].engine.image, configuration.backend
    )
    services[kinds.get("planner", PLANNER)] = service
