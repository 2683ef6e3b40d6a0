"""One run of the profiler, from its input to its output, with its progress.

It is a generator: it yields each step, and returns the documents. So the caller decides where
progress goes, and nothing in here knows of files.
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


def profile(known: Configuration, inputs: Inputs) -> Generator[Progress, None, Results]:
    """Yields each step and returns the documents to write.

    Raises:
        Refusal: a value cannot be used, or the targets cannot be met.
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
    found = choices.engines(shape, wanted.hardware, wanted.targets, source.make)
    yield Progress(Phase.SWEEPING_PREFILL, f"{len(found)} layouts of engines by {source.name}")
    prefill = choices.prefill_role(found, wanted)
    yield Progress(Phase.SWEEPING_DECODE, f"{len(found)} layouts of engines by {source.name}")
    decode = choices.decode_role(found, wanted)
    best = _best(found, prefill, decode, wanted)
    yield Progress(Phase.SELECTING_CONFIG, best.text())
    longest = wanted.longest_context or shape.longest_context
    longest = longest or wanted.targets.isl + wanted.targets.osl
    data = data_config_map(
        prefill_curve(best.roles[0].engine, longest, wanted.prefill_points),
        decode_curve(best.roles[-1].engine, longest, wanted.decode_points),
    )
    yield Progress(Phase.BUILDING_CURVES, "curves for the planner and the simulated engines")
    graph = _graph(wanted, backend, base, best, inputs.name)
    mocked = mocked_graph(graph["metadata"]["name"], wanted, backend, best)
    plain = [graph]
    if wanted.planner is not None:
        _add_planner(graph, wanted, best)
        plain = [data, graph]
    yield Progress(Phase.GENERATING_DGD, f"graph {graph['metadata']['name']}")
    files = {RESULTS_FILE: plain, MOCKED_RESULTS_FILE: [data, mocked]}
    return Results(best, files, candidates(found, prefill, wanted))


def _best(
    found: tuple[Engine, ...], prefill: Role | None, decode: Role | None, wanted: Configuration
) -> Choice:
    """The choice with the largest margin for the error of predictions that any has."""
    try:
        return choices.chosen(found, prefill, decode, wanted)
    except Refusal:
        if wanted.margin is not None:
            raise
        for room in (Margin.MEDIAN, Margin.NONE):
            less = replace(wanted, room=room)
            roles = choices.prefill_role(found, less), choices.decode_role(found, less)
            with suppress(Refusal):
                return replace(choices.chosen(found, *roles, less), room=room)
        raise


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


def _graph(
    wanted: Configuration, backend: Backend, base: Object | None, best: Choice, name: str
) -> Object:
    if base is None:
        own = name or _NOT_IN_NAMES.sub("-", wanted.model.lower().rpartition("/")[2]).strip("-")
        own = own if name else f"{own[:_LONGEST_NAME].strip('-') or 'model'}-{best.mode.value}"
        is_disaggregated = best.mode is Mode.DISAGGREGATED
        base = base_graph(backend, own, wanted.image, is_disaggregated=is_disaggregated)
    return with_choice(base, backend, best, wanted.model, wanted.image)


def _add_planner(graph: Object, wanted: Configuration, best: Choice) -> None:
    """Puts a planner into the graph, in the place of one that is there."""
    services = graph["spec"]["services"]
    kinds = {each.get("componentType"): key for key, each in services.items()}
    frontend = services.get(kinds.get("frontend", FRONTEND), {})
    image = ((frontend.get("extraPodSpec") or {}).get("mainContainer") or {}).get("image")
    service = planner_service(wanted, best, image or default_planner_image(), wanted.backend)
    services[kinds.get("planner", PLANNER)] = service
