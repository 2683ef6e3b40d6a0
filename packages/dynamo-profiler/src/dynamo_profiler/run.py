"""One run of the profiler, from its input to its output, with its progress.

It has two halves, `search` and `results`, with the choice between them: by predictions (`best`), or by
measuring (`online`). Both are generators: they yield each step, and return what they found. So the caller
decides where progress goes, and nothing in here knows of files.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dynamo_graphs.api.profiling import MOCKED_RESULTS_FILE, RESULTS_FILE
from dynamo_profiler.base import BACKENDS, FRONTEND, PLANNER, Backend, base_graph
from dynamo_profiler.catalog import model_named
from dynamo_profiler.choice import (
    Choice,
    Role,
    cheapest,
    chosen,
    decode_role,
    fitting_engines,
    prefill_role,
)
from dynamo_profiler.configuration import Configuration, Margin, Mode
from dynamo_profiler.engine import Engine
from dynamo_profiler.pareto import Candidate, candidates
from dynamo_profiler.planner import (
    DATA,
    data_config_map,
    decode_curve,
    mocked_graph,
    planner_service,
    prefill_curve,
)
from dynamo_profiler.progress import Phase, Progress
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Shape, shape_of
from dynamo_profiler.sources import Source, source_of
from dynamo_profiler.workers import graph_in, mode_of, with_choice
from kube_runtime.kind import Fields, Object

_LONGEST_NAME = 40
_ROOMS = (0.25, 0.5, 1.0, 2.0)
"""Errors of predictions that candidates leave room for. Source: docs/profiler-accuracy.md has up to 200 %."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is read for a run, beside its configuration.

    `base` None means: the profiler's own. `model_config` None means: only the model's name is
    known. `name` is that of the request; empty means: there is none.
    """

    base: Sequence[object] | None = None
    model_config: Fields | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """The documents of each file, the choice that is in them, and what else was considered."""

    choice: Choice
    files: dict[str, list[Object]]
    considered: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The engines that hold the model, the cheapest of each role, and what a graph is made of.

    `base` None means: the profiler's own. `prefill` or `decode` None means: none meets its target.
    """

    configuration: Configuration
    shape: Shape
    backend: Backend
    base: Object | None
    name: str
    engines: tuple[Engine, ...]
    prefill: Role | None
    decode: Role | None

    def graph(self, choice: Choice) -> Object:
        """The graph with these workers, without a planner.

        Raises:
            Refusal: a worker of the base is not understood.
        """
        configuration, base = self.configuration, self.base
        if base is None:
            name = self.name
            if not name:
                model = configuration.model.lower().rpartition("/")[2]
                short = _NOT_IN_NAMES.sub("-", model).strip("-")[:_LONGEST_NAME].strip("-")
                name = f"{short or 'model'}-{choice.mode.value}"
            is_apart = choice.mode is Mode.DISAGGREGATED
            base = base_graph(self.backend, name, configuration.image, is_disaggregated=is_apart)
        return with_choice(base, self.backend, choice, configuration)

    def curves(self, choice: Choice, name: str = DATA) -> Object:
        """The ConfigMap with the times of these workers, for the planner and for simulated engines."""
        configuration = self.configuration
        longest = configuration.longest_context or self.shape.longest_context
        longest = longest or configuration.targets.isl + configuration.targets.osl
        return data_config_map(
            prefill_curve(choice.roles[0].engine, longest, configuration.prefill_points),
            decode_curve(choice.roles[-1].engine, longest, configuration.decode_points),
            name,
        )


def profile(configuration: Configuration, inputs: Inputs) -> Generator[Progress, None, Results]:
    """Yields each step and returns the documents to write, of the graph that is best by predictions.

    Raises:
        Refusal: a value cannot be used, or the targets cannot be met.
    """
    space = yield from search(configuration, inputs)
    return (yield from results(space, best(space)))


def search(configuration: Configuration, inputs: Inputs) -> Generator[Progress, None, SearchSpace]:
    """Yields each step and returns the engines that hold the model.

    Raises:
        Refusal: a value cannot be used, or no engine holds the model.
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
    yield Progress(Phase.INITIALIZING, _assumptions(configuration, shape, source))
    _check_context(configuration, shape)
    try:
        engines = fitting_engines(shape, hardware, targets, source.make)
    except Refusal as error:
        if configuration.engine != "auto" or source.name == "formulas":
            raise
        # No table has a layout that is possible here.
        source = replace(source_of("formulas", *of_model), note=str(error))
        yield Progress(Phase.INITIALIZING, _assumptions(configuration, shape, source))
        engines = fitting_engines(shape, hardware, targets, source.make)
    yield Progress(Phase.SWEEPING_PREFILL, f"{len(engines)} layouts of engines by {source.name}")
    prefill = prefill_role(engines, configuration)
    yield Progress(Phase.SWEEPING_DECODE, f"{len(engines)} layouts of engines by {source.name}")
    decode = decode_role(engines, configuration)
    return SearchSpace(configuration, shape, backend, base, inputs.name, engines, prefill, decode)


def results(space: SearchSpace, choice: Choice) -> Generator[Progress, None, Results]:
    """Yields each step and returns the documents with that choice.

    Raises:
        Refusal: a worker of the base or an option of the planner cannot be used.
    """
    configuration = space.configuration
    yield Progress(Phase.SELECTING_CONFIG, choice.text())
    data = space.curves(choice)
    yield Progress(Phase.BUILDING_CURVES, "curves for the planner and the simulated engines")
    graph = space.graph(choice)
    mocked = mocked_graph(graph["metadata"]["name"], configuration, space.backend, choice)
    plain = [graph]
    if configuration.planner is not None:
        _add_planner(graph, configuration, choice)
        plain = [data, graph]
    yield Progress(Phase.GENERATING_DGD, f"graph {graph['metadata']['name']}")
    files = {RESULTS_FILE: plain, MOCKED_RESULTS_FILE: [data, mocked]}
    return Results(choice, files, candidates(space.engines, space.prefill, configuration))


def best(space: SearchSpace) -> Choice:
    """The choice with the largest margin for the error of predictions that any has.

    Raises:
        Refusal: the targets cannot be met, or only by more GPUs or replicas than are allowed.
    """
    configuration = space.configuration
    try:
        return chosen(space.engines, space.prefill, space.decode, configuration)
    except Refusal:
        if configuration.margin is not None:
            raise
        for room in (Margin.MEDIAN, Margin.NONE):
            with suppress(Refusal):
                return replace(
                    cheapest(space.engines, replace(configuration, room=room)), room=room
                )
        raise


def to_measure(space: SearchSpace, most: int) -> tuple[Choice, ...]:
    """At most so many choices, the cheapest first: with no room for an error of the predictions, up to 200 %.

    A margin that is asked for is the least room. Where there are more, the cheapest and the most expensive
    are among them.

    Raises:
        Refusal: not even the predictions meet the targets.
    """
    configuration = space.configuration
    least = configuration.margin or 0.0
    modes = [configuration.mode] if configuration.mode else list(Mode)
    made: dict[object, Choice] = {}
    for room in (least, *(room for room in _ROOMS if room > least)):
        for mode in modes:
            with suppress(Refusal):
                choice = cheapest(space.engines, replace(configuration, margin=room, mode=mode))
                made.setdefault(choice.workers, choice)
    if not made:
        return (cheapest(space.engines, replace(configuration, margin=least)),)
    ordered = sorted(made.values(), key=lambda choice: (choice.gpus, -choice.rate))
    if len(ordered) <= most:
        return tuple(ordered)
    steps = max(most - 1, 1)
    return tuple(ordered[round(at * (len(ordered) - 1) / steps)] for at in range(most))


def _mode(configuration: Configuration, base: Object | None, backend: Backend) -> Mode | None:
    """The mode that is asked for, that the base is made for, or that a planner needs."""
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
    hardware = configuration.hardware
    by = f"{source.name} ({source.note})" if source.note else source.name
    origin = "assumed, because hardware.gpuType is not set" if hardware.is_assumed else "given"
    return (
        f"estimate without a GPU: {configuration.model} with "
        f"{shape.parameters / 1e9:.4g} billion parameters of {shape.bytes_per_parameter:g} bytes, "
        f"GPU {hardware.gpu.name} ({origin}), {hardware.fewest} to {hardware.most} per engine, by {by}"
    )


def _check_context(configuration: Configuration, shape: Shape) -> None:
    longest = configuration.longest_context or shape.longest_context
    need = configuration.targets.isl + configuration.targets.osl
    if longest and need > longest:
        raise Refusal(
            f"sla.isl and sla.osl make {need} tokens, but the model accepts at most {longest}"
        )


def _add_planner(graph: Object, configuration: Configuration, choice: Choice) -> None:
    """Puts a planner into the graph, in the place of one that is there."""
    services = graph["spec"]["services"]
    kinds = {service.get("componentType"): key for key, service in services.items()}
    frontend = services.get(kinds.get("frontend", FRONTEND), {})
    image = ((frontend.get("extraPodSpec") or {}).get("mainContainer") or {}).get("image")
    service = planner_service(
        configuration, choice, image or BACKENDS["vllm"].engine.image, configuration.backend
    )
    services[kinds.get("planner", PLANNER)] = service
