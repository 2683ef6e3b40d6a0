"""Find the workers of a base graph and set them as chosen.

Users write the base graph. The profiler changes only replicas, GPUs, and the flags for model and parallelism.
It refuses what it cannot interpret instead of guessing.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy

from dynamo_operator.component.api import GROUP
from dynamo_operator.shared.problems import is_later_version
from dynamo_operator.versions.shapes import ConversionError
from dynamo_profiler import Refusal
from dynamo_profiler.base import DECODE, PREFILL, Backend, value_of, with_value
from dynamo_profiler.choice import Choice, Role
from dynamo_profiler.configuration import Configuration, Mode
from kube_runtime.types.meta import Object

_BASE = "the base graph"
_SERVED = "--served-model-name"
"""All backends have this flag."""


def graph_in(documents: Sequence[object]) -> Object:
    """The graph among the documents of a base file, without fields that the API server sets.

    Raises:
        Refusal: there is no graph, or several, or it has no services.
    """
    graphs = [
        document
        for document in documents
        if isinstance(document, Mapping) and document.get("kind") == "DynamoGraphDeployment"
    ]
    if len(graphs) != 1:
        raise Refusal(f"{_BASE} must be one DynamoGraphDeployment, but the file has {len(graphs)}")
    (graph,) = graphs
    graph = _readable(graph)
    metadata, spec = graph.get("metadata"), graph.get("spec")
    services = spec.get("services") if isinstance(spec, Mapping) else None
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise Refusal(f"{_BASE} has no metadata.name")
    if not isinstance(services, Mapping) or not all(
        isinstance(service, Mapping) for service in services.values()
    ):
        raise Refusal(
            f"{_BASE} has no services: a mapping spec.services, or the list spec.components of v1beta1"
        )
    if str(graph.get("apiVersion", "")).partition("/")[0] != GROUP:
        raise Refusal(f"{_BASE} is of {graph.get('apiVersion')!r:.80}, not of {GROUP}")
    kept = ("name", "namespace", "labels", "annotations")
    return {
        **deepcopy({key: value for key, value in graph.items() if key != "status"}),
        "metadata": deepcopy({key: metadata[key] for key in kept if key in metadata}),
    }


def _readable(graph: Mapping[str, object]) -> Mapping[str, object]:
    """The graph in v1alpha1, in which the profiler computes and writes. Raises: Refusal."""
    if not is_later_version(graph):
        return graph
    from dynamo_operator.shared.seen import seen

    try:
        return seen(dict(graph))
    except ConversionError as error:
        raise Refusal(f"{_BASE}: {error.path or 'spec'}: {error.problem}") from None


def mode_of(graph: Object, backend: Backend) -> Mode:
    """The mode of a graph's workers.

    Raises:
        Refusal: it has neither one worker nor one for prefill and one for decode.
    """
    roles = sorted(_role(key, service, backend) for key, service in _workers(graph).items())
    if roles == [DECODE, PREFILL]:
        return Mode.DISAGGREGATED
    if len(roles) == 1 and roles != [PREFILL]:
        return Mode.AGGREGATED
    raise Refusal(
        f"{_BASE} must have one worker, or one for prefill and one for decode; it has "
        f"{', '.join(sorted(_workers(graph))) or 'none'}"
    )


def with_choice(
    graph: Object,
    backend: Backend,
    choice: Choice,
    configuration: Configuration,
    *,
    has_weights: bool = False,
) -> Object:
    """The graph with the chosen workers, and with the configured image if any.

    The workers load mounted weights of the model, if the folder `has_weights` or the graph names it, and
    serve them by the model's name. With the name alone they would download them.

    Raises:
        Refusal: a worker is of a form that the profiler cannot change.
    """
    sized = deepcopy(graph)
    by_role: dict[str, Role] = dict(zip((PREFILL, DECODE), choice.roles, strict=False))
    for key, service in _workers(sized).items():
        is_apart = choice.mode is Mode.DISAGGREGATED
        role = by_role[_role(key, service, backend)] if is_apart else choice.roles[0]
        container = _main_container(key, service)
        _set_size(service, role)
        if configuration.image:
            container["image"] = configuration.image
        args = _with_model([*container["args"]], backend, configuration, has_weights=has_weights)
        container["args"] = backend.with_layout(args, role.engine.layout)
    return sized


def _workers(graph: Object) -> dict[str, Object]:
    services: dict[str, Object] = graph["spec"]["services"]
    kinds = ("worker", PREFILL, DECODE)
    return {key: service for key, service in services.items() if service.get("componentType") in kinds}


def _role(key: str, service: Object, backend: Backend) -> str:
    """Prefill or decode, by the fields, the flags, or the name; by default decode, also if aggregated."""
    for field in ("subComponentType", "componentType"):
        if service.get(field) in (PREFILL, DECODE):
            return str(service[field])
    args = _main_container(key, service)["args"]
    if any(value_of(args, flag) == value for flag, value in backend.prefill_marks):
        return PREFILL
    return PREFILL if PREFILL in key.lower() else DECODE


def _main_container(key: str, service: Object) -> Object:
    pod = service.get("extraPodSpec")
    container = pod.get("mainContainer") if isinstance(pod, dict) else None
    args: object = container.get("args") if isinstance(container, dict) else None
    if not isinstance(container, dict) or not isinstance(args, list):
        raise Refusal(f"{_BASE}: worker {key} has no list of args in its main container")
    if not all(isinstance(argument, str) for argument in args):
        raise Refusal(f"{_BASE}: an argument of worker {key} is not a string")
    if any(" -" in argument for argument in args):
        raise Refusal(f"{_BASE}: the arguments of worker {key} are one string; write one argument per entry")
    if service.get("multinode"):
        raise Refusal(f"{_BASE}: worker {key} spans several nodes, which the formulas do not cover")
    return container


def _set_size(service: Object, role: Role) -> None:
    resources, nodes = service.get("resources") or {}, role.engine.layout.nodes
    if not isinstance(resources, dict):
        raise Refusal(f"{_BASE}: the resources of a worker are not a mapping")
    gpus = str(role.engine.gpus // nodes)
    service["replicas"] = role.replicas
    if nodes > 1:
        service["multinode"] = {"nodeCount": nodes}
    limits = {**(resources.get("limits") or {}), "gpu": gpus}
    service["resources"] = {**resources, "limits": limits}
    requests = resources.get("requests")
    if isinstance(requests, dict) and "gpu" in requests:
        service["resources"]["requests"] = {**requests, "gpu": gpus}


def _with_model(
    args: list[str], backend: Backend, configuration: Configuration, *, has_weights: bool
) -> list[str]:
    first, *others = backend.engine.model_flags
    folder = configuration.model_folder
    is_named = folder != "" and (value_of(args, first) or "").rstrip("/") == folder
    is_mounted = is_named or (folder != "" and has_weights)
    if not is_named:
        args = with_value(args, first, folder if is_mounted else configuration.model)
    if is_mounted or any(value_of(args, flag) is not None for flag in others):
        args = with_value(args, _SERVED, configuration.model)
    return args
