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
from dynamo_profiler import choice as choices
from dynamo_profiler.base import BACKENDS, FRONTEND, PLANNER, Backend, base_graph
from dynamo_profiler.catalog import model_named
from dynamo_profiler.choice import Choice, Role
from dynamo_profiler.configuration import Configuration, Margin, Mode
from dynamo_profiler.curves import decode_curve, prefill_curve
from dynamo_profiler.engine import Engine
from dynamo_profiler.pareto import Candidate, candidates
from dynamo_profiler.planner import (
    DATA,
    data_config_map,
    default_planner_image,
    mocked_graph,
    planner_service,
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
class Search:
    """The engines that hold the model, the cheapest of each role, and what a graph is made of.

    `base` None means: the profiler's own. `prefill` or `decode` None means: none meets its target.
    """

    wanted: Configuration
    shape: Shape
    backend: Backend
    base: Object | None
    name: str
    engines: tuple[Engine, ...]
    prefill: Role | None
    decode: Role | None

    def graph(self, best: Choice) -> Object:
        """The graph with these workers, without a planner.

        Raises:
            Refusal: a worker of the base is not understood.
        """
        wanted, base = self.wanted, self.base
        if base is None:
            model = wanted.model.lower().rpartition("/")[2]
            own = self.name or _NOT_IN_NAMES.sub("-", model).strip("-")
            own = (
                own
                if self.name
                else f"{own[:_LONGEST_NAME].strip('-') or 'model'}-{best.mode.value}"
            )
            is_apart = best.mode is Mode.DISAGGREGATED
            base = base_graph(self.backend, own, wanted.image, is_disaggregated=is_apart)
        return with_choice(base, self.backend, best, wanted)

    def curves(self, best: Choice, name: str = DATA) -> Object:
        """The ConfigMap with the times of these workers, for the planner and for simulated engines."""
        wanted = self.wanted
        longest = wanted.longest_context or self.shape.longest_context
        longest = longest or wanted.targets.isl + wanted.targets.osl
        return data_config_map(
            prefill_curve(best.roles[0].engine, longest, wanted.prefill_points),
            decode_curve(best.roles[-1].engine, longest, wanted.decode_points),
            name,
        )


def profile(known: Configuration, inputs: Inputs) -> Generator[Progress, None, Results]:
    """Yields each step and returns the documents to write, of the graph that is best by predictions.

    Raises:
        Refusal: a value cannot be used, or the targets cannot be met.
    """
    found = yield from search(known, inputs)
    return (yield from results(found, best(found)))


def search(known: Configuration, inputs: Inputs) -> Generator[Progress, None, Search]:
    """Yields each step and returns the engines that hold the model.

    Raises:
        Refusal: a value cannot be used, or no engine holds the model.
    """
    backend = BACKENDS[known.backend]
    listed = model_named(known.model)
    config = inputs.model_config or (listed.config if listed else None)
    shape = shape_of(known.model, config, known.billions)
    base = graph_in(inputs.base) if inputs.base is not None else None
    wanted = replace(known, mode=_mode(known, base, backend))
    source = source_of(wanted.engine, shape, wanted.hardware.gpu, config, wanted.backend)
    yield Progress(Phase.INITIALIZING, _assumptions(wanted, shape, source))
    _check_context(wanted, shape)
    try:
        found = choices.engines(shape, wanted.hardware, wanted.targets, source.make)
    except Refusal as error:
        if wanted.engine != "auto" or source.name == "formulas":
            raise
        formulas = source_of("formulas", shape, wanted.hardware.gpu, config, wanted.backend)
        source = replace(formulas, note=str(error))  # no table has a layout that is possible here
        yield Progress(Phase.INITIALIZING, _assumptions(wanted, shape, source))
        found = choices.engines(shape, wanted.hardware, wanted.targets, source.make)
    yield Progress(Phase.SWEEPING_PREFILL, f"{len(found)} layouts of engines by {source.name}")
    prefill = choices.prefill_role(found, wanted)
    yield Progress(Phase.SWEEPING_DECODE, f"{len(found)} layouts of engines by {source.name}")
    decode = choices.decode_role(found, wanted)
    return Search(wanted, shape, backend, base, inputs.name, found, prefill, decode)


def results(found: Search, best: Choice) -> Generator[Progress, None, Results]:
    """Yields each step and returns the documents with that choice.

    Raises:
        Refusal: a worker of the base or an option of the planner cannot be used.
    """
    wanted = found.wanted
    yield Progress(Phase.SELECTING_CONFIG, best.text())
    data = found.curves(best)
    yield Progress(Phase.BUILDING_CURVES, "curves for the planner and the simulated engines")
    graph = found.graph(best)
    mocked = mocked_graph(graph["metadata"]["name"], wanted, found.backend, best)
    plain = [graph]
    if wanted.planner is not None:
        _add_planner(graph, wanted, best)
        plain = [data, graph]
    yield Progress(Phase.GENERATING_DGD, f"graph {graph['metadata']['name']}")
    files = {RESULTS_FILE: plain, MOCKED_RESULTS_FILE: [data, mocked]}
    return Results(best, files, candidates(found.engines, found.prefill, wanted))


def best(found: Search) -> Choice:
    """The choice with the largest margin for the error of predictions that any has.

    Raises:
        Refusal: the targets cannot be met, or only by more GPUs or replicas than are allowed.
    """
    wanted = found.wanted
    try:
        return choices.chosen(found.engines, found.prefill, found.decode, wanted)
    except Refusal:
        if wanted.margin is not None:
            raise
        for room in (Margin.MEDIAN, Margin.NONE):
            with suppress(Refusal):
                return replace(
                    choices.cheapest(found.engines, replace(wanted, room=room)), room=room
                )
        raise


def to_measure(found: Search, most: int) -> tuple[Choice, ...]:
    """At most so many choices, the cheapest first: with no room for an error of the predictions, up to 200 %.

    A margin that is asked for is the least room. Where there are more, the cheapest and the most expensive
    are among them.

    Raises:
        Refusal: not even the predictions meet the targets.
    """
    wanted = found.wanted
    least = wanted.margin or 0.0
    modes = [wanted.mode] if wanted.mode else list(Mode)
    made: dict[object, Choice] = {}
    for room in (least, *(each for each in _ROOMS if each > least)):
        for mode in modes:
            with suppress(Refusal):
                choice = choices.cheapest(found.engines, replace(wanted, margin=room, mode=mode))
                made.setdefault(choice.workers, choice)
    if not made:
        return (choices.cheapest(found.engines, replace(wanted, margin=least)),)
    ordered = sorted(made.values(), key=lambda each: (each.gpus, -each.rate))
    if len(ordered) <= most:
        return tuple(ordered)
    steps = max(most - 1, 1)
    return tuple(ordered[round(at * (len(ordered) - 1) / steps)] for at in range(most))


def _mode(known: Configuration, base: Object | None, backend: Backend) -> Mode | None:
    """The mode that is asked for, that the base is made for, or that a planner needs."""
    made_for = mode_of(base, backend) if base is not None else None
    if made_for and known.mode and made_for is not known.mode:
        raise Refusal(
            f"analytic.mode is {known.mode.value}, but the base graph is made for {made_for.value}"
        )
    mode = known.mode or made_for
    if known.planner is None:
        return mode
    if mode is Mode.AGGREGATED:
        raise Refusal("a planner needs separate workers for prefill and decode; remove `planner`")
    return Mode.DISAGGREGATED


def _assumptions(wanted: Configuration, shape: Shape, source: Source) -> str:
    hardware = wanted.hardware
    by = f"{source.name} ({source.note})" if source.note else source.name
    said = "assumed, because hardware.gpuType is not set" if hardware.is_assumed else "given"
    return (
        f"estimate without a GPU: {wanted.model} with "
        f"{shape.parameters / 1e9:.4g} billion parameters of {shape.bytes_per_parameter:g} bytes, "
        f"GPU {hardware.gpu.name} ({said}), {hardware.fewest} to {hardware.most} per engine, by {by}"
    )


def _check_context(wanted: Configuration, shape: Shape) -> None:
    longest = wanted.longest_context or shape.longest_context
    need = wanted.targets.isl + wanted.targets.osl
    if longest and need > longest:
        raise Refusal(
            f"sla.isl and sla.osl make {need} tokens, but the model accepts at most {longest}"
        )


def _add_planner(graph: Object, wanted: Configuration, best: Choice) -> None:
    """Puts a planner into the graph, in the place of one that is there."""
    services = graph["spec"]["services"]
    kinds = {each.get("componentType"): key for key, each in services.items()}
    frontend = services.get(kinds.get("frontend", FRONTEND), {})
    image = ((frontend.get("extraPodSpec") or {}).get("mainContainer") or {}).get("image")
    service = planner_service(wanted, best, image or default_planner_image(), wanted.backend)
    services[kinds.get("planner", PLANNER)] = service
