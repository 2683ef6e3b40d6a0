"""The graph of a request: the result of profiling, with what the user wants of it beyond that.

What profiling chose for a service takes precedence, since it was measured so; what the user set for the
profiling pods applies where nothing else is set. The base graph, from which profiling starts, gets that too:
a profiler deploys temporary graphs, and has no field for tolerations and the like.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import WORKER_TYPES
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request_output import BadOutput, ProfilingResult, documents, parse_results
from kube_runtime.apply.result import controls
from kube_runtime.kind import Key, Object
from kube_runtime.types.batch import Output

_LISTS = ("tolerations", "imagePullSecrets")
_CONTENT = ("data", "binaryData", "immutable")
_SINGLE = ("affinity", "runtimeClassName")
_FORMS: dict[type, str] = {dict: "mapping", list: "list"}
Form = TypeVar("Form", Object, list[object])
_REFERENCES = frozenset(("configMap", "configMapRef", "configMapKeyRef"))


def target(request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec) -> Key:
    """Where the graph is, or will be."""
    metadata, overrides = request.metadata, spec.deployment_overrides
    name = (overrides.name if overrides else None) or metadata.name
    return Key((overrides.namespace if overrides else None) or metadata.namespace, name)


def completed(
    graph: Object, spec: DynamoGraphDeploymentRequestSpec, placed: Object, *, may_scale: bool = True
) -> Object:
    """The found graph with adapters for a planner, and pods where the user can run them.

    `placed` are the fields of the profiling pod that say where it runs. `may_scale`: whether a planner gets
    the adapters that it needs.

    Raises:
        BadOutput: the pod of a service has not the form of one.
    """
    body = graph["spec"]
    services = body["services"]
    has_planner = may_scale and any(_type(service) == "planner" for service in services.values())
    done = {
        name: _service(name, service, spec, placed, is_scaled=has_planner)
        for name, service in services.items()
    }
    return {**graph, "spec": {**body, "services": done}}


def deployed(
    request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec, at: Key
) -> Object:
    """The graph as it is created.

    Raises:
        ValueError: the request has no graph in its status.
    """
    generated = request.status.generated_deployment
    if generated is None:
        raise ValueError("status.generatedDeployment is not set")
    metadata: Object = generated.get("metadata") or {}
    overrides = spec.deployment_overrides
    return {
        "apiVersion": generated["apiVersion"],
        "kind": generated["kind"],
        "metadata": {
            "name": at.name,
            "namespace": at.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                labels.MANAGED_BY: labels.MANAGER,
                **(overrides.labels if overrides else {}),
                **tracking(request),
            },
            "annotations": {
                **(metadata.get("annotations") or {}),
                **(overrides.annotations if overrides else {}),
                labels.REQUEST_UID: request.metadata.uid,
            },
        },
        "spec": generated.get("spec"),
    }


def tracking(request: DynamoGraphDeploymentRequest) -> dict[str, str]:
    """The labels that lead from a graph or ConfigMap back to its request."""
    metadata = request.metadata
    return {
        labels.REQUEST: names.label_value(metadata.name),
        labels.REQUEST_NAMESPACE: metadata.namespace,
    }


def is_own_config_map(request: DynamoGraphDeploymentRequest, live: Output) -> bool:
    """Whether a ConfigMap was made for a request of this name; an earlier one had the same results."""
    return tracking(request).items() <= live.metadata.labels.items() and not (
        live.metadata.controller and not controls(request, live)
    )


def new_names(
    request: DynamoGraphDeploymentRequest,
    manifests: Iterable[Object],
    present: Mapping[str, Output],
) -> dict[str, str]:
    """New names for ConfigMaps whose names belong to others, by the old ones. `present` are by name."""
    renamed: dict[str, str] = {}
    for manifest in manifests:
        name: str = manifest["metadata"]["name"]
        live = present.get(name)
        if live is not None and not is_own_config_map(request, live):
            renamed[name] = names.dns_subdomain(f"{name}-{request.metadata.name}")
    return renamed


def config_map(request: DynamoGraphDeploymentRequest, manifest: Object, namespace: str) -> Object:
    """A ConfigMap that profiling made for the graph, as it is applied.

    Raises:
        BadOutput: its labels or annotations are none.
    """
    metadata = manifest["metadata"]
    kept: Object = {name: manifest[name] for name in _CONTENT if name in manifest}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": metadata["name"],
            "namespace": namespace,
            "labels": {
                **_of_form(dict, metadata, "labels", "metadata"),
                **tracking(request),
                labels.MANAGED_BY: labels.MANAGER,
            },
            "annotations": {
                **_of_form(dict, metadata, "annotations", "metadata"),
                labels.REQUEST_UID: request.metadata.uid,
            },
        },
        **kept,
    }


def _type(service: object) -> str:
    return str(service.get("componentType", "")) if isinstance(service, dict) else ""


def _of_form(form: type[Form], parent: Object, name: str, path: str) -> Form:
    """A field that is to be a list or a mapping; an empty one if it is not set."""
    value = parent.get(name) or form()
    if not isinstance(value, form):
        raise BadOutput(f"{path}.{name} is not a {_FORMS[form]}")
    return value


def _service(
    name_: str,
    service: Object,
    spec: DynamoGraphDeploymentRequestSpec,
    placed: Object,
    *,
    is_scaled: bool,
) -> Object:
    done, is_worker = dict(service), _type(service) in WORKER_TYPES
    if is_scaled and is_worker and "scalingAdapter" not in done:
        done["scalingAdapter"] = {"enabled": True}
    if is_worker and (more := _unknown(spec.profiling_config.env, done.get("envs") or [])):
        done["envs"] = [*(done.get("envs") or []), *more]
    placement = placed if is_worker and not spec.use_mocker else _only(placed, "imagePullSecrets")
    if placement:
        pod: Object = dict(done.get("extraPodSpec") or {})
        path = f"the graph's spec.services[{name_}].extraPodSpec"
        for name in _LISTS:
            present = _of_form(list, pod, name, path)
            present_forms = set(map(_form, present))
            more = [entry for entry in placement.get(name, ()) if _form(entry) not in present_forms]
            if more:
                pod[name] = [*present, *more]
        if "nodeSelector" in placement:
            chosen = _of_form(dict, pod, "nodeSelector", path)
            pod["nodeSelector"] = {**placement["nodeSelector"], **chosen}
        pod |= {name: placement[name] for name in _SINGLE if name in placement and name not in pod}
        if pod:
            done["extraPodSpec"] = pod
    return done


def _form(value: object) -> bytes:
    """The same bytes for equal values: a set of them is searched faster than a list of objects."""
    return msgspec.json.encode(value, order="deterministic")


def _unknown(requested: Iterable[Object], present: Iterable[Object]) -> list[Object]:
    """The variables that are not set yet."""
    present_names = {env.get("name") for env in present}
    return [env for env in requested if env.get("name") not in present_names]


def _only(placed: Object, name: str) -> Object:
    return {name: placed[name]} if name in placed else {}


def _with_names(value: object, renamed: Mapping[str, str]) -> object:
    match value:
        case dict():
            return {
                key: _renamed(child, renamed) if key in _REFERENCES else _with_names(child, renamed)
                for key, child in value.items()
            }
        case list():
            return [_with_names(child, renamed) for child in value]
        case _:
            return value


def _renamed(reference: object, renamed: Mapping[str, str]) -> object:
    if not isinstance(reference, dict) or reference.get("name") not in renamed:
        return reference
    return {**reference, "name": renamed[reference["name"]]}


def read_output(
    request: DynamoGraphDeploymentRequest,
    spec: DynamoGraphDeploymentRequestSpec,
    data: Mapping[str, str],
    placed: Object,
) -> ProfilingResult:
    """The graph from the profiling results, with the user's overrides.

    `placed` are the fields of the profiling pod that say where it runs.

    Raises:
        BadOutput: there is no graph in it that can be used.
    """
    name = request.metadata.name
    config_map = names.profiling_output(name)
    output = parse_results(data, config_map, is_mocked=spec.use_mocker, name=name)
    return dataclasses.replace(output, graph=completed(output.graph, spec, placed))


def with_new_names(output: ProfilingResult, renamed: Mapping[str, str]) -> ProfilingResult:
    """Rename ConfigMaps in the output, by their old names."""
    if not renamed:
        return output
    graph = output.graph | {"spec": _with_names(output.graph["spec"], renamed)}
    return output.renamed(graph, renamed)


_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""What JSON takes as it is and YAML only as an escape (YAML 1.2, 5.1)."""


def completed_base(text: str, spec: DynamoGraphDeploymentRequestSpec, placed: Object) -> str | None:
    """The base graph as JSON, which is YAML. None means: as it is; nothing has to be, or can be, added.

    `placed` are the fields of the profiling pod that say where it runs.
    """
    try:
        graphs = list(documents("the base graph", text))
        if len(graphs) != 1 or not _is_graph(graphs[0]):
            return None
        # Temporary graphs run the real engines, whatever the last one runs.
        done = completed(graphs[0], replace(spec, use_mocker=False), placed, may_scale=False)
    except BadOutput:
        return None
    if done == graphs[0]:
        return None
    text = msgspec.json.format(msgspec.json.encode(done), indent=2).decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def base_config_map(request: DynamoGraphDeploymentRequest, key: str, done: str) -> Object:
    """The ConfigMap with the completed base graph under that key, without owner references."""
    metadata = request.metadata
    manifest: Object = {
        "metadata": {"name": names.profiling_base(metadata.name, metadata.uid)},
        "data": {key: done},
    }
    return config_map(request, manifest, metadata.namespace)


def _is_graph(document: Object) -> bool:
    spec = document.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    return (
        document["kind"] == DynamoGraphDeployment.KIND.name
        and isinstance(services, dict)
        and all(_is_service(service) for service in services.values())
    )


def _is_service(value: object) -> bool:
    """Whether it has the form of a service, as far as something is added to it."""
    if not isinstance(value, dict):
        return False
    pod, envs = value.get("extraPodSpec") or {}, value.get("envs") or []
    return (
        isinstance(pod, dict)
        and isinstance(envs, list)
        and all(isinstance(env, dict) for env in envs)
    )
