"""The graph of a request: the result of profiling, with the user's overrides and placement of pods.

Fields that profiling chose for a service take precedence, since they were measured; those of the
profiling pods fill in what is unset. The base graph, from which profiling starts, is completed in the
same way, because a profiler deploys temporary graphs and has no fields for tolerations and the like.
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
from dynamo_graphs.plan.request_output import (
    BadOutput,
    ProfilingResult,
    documents,
    named_config_maps,
    parse_results,
)
from dynamo_graphs.render.profiling_config import model_cache, worker_variables
from dynamo_graphs.types.profiling import Output
from kube_runtime.apply.result import controls
from kube_runtime.kind import Key, Object

_LISTS = ("tolerations", "imagePullSecrets")
_CONTENT = ("data", "binaryData", "immutable")
_SINGLE = ("affinity", "runtimeClassName")
_FORMS: dict[type, str] = {dict: "mapping", list: "list"}
Form = TypeVar("Form", Object, list[object])
_REFERENCES = frozenset(("configMap", "configMapRef", "configMapKeyRef"))


def target(request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec) -> Key:
    """Namespace and name of the graph, whether or not it exists."""
    metadata, overrides = request.metadata, spec.deployment_overrides
    name = (overrides.name if overrides else None) or metadata.name
    return Key((overrides.namespace if overrides else None) or metadata.namespace, name)


def completed(
    graph: Object, spec: DynamoGraphDeploymentRequestSpec, placed: Object, *, may_scale: bool = True
) -> Object:
    """Return the graph with the placement of the profiling pod, the model's PVC, and adapters for a planner.

    `placed` are the fields of the profiling pod about placement. Without `may_scale` no adapters are enabled.

    Raises:
        BadOutput: the pod of a service is malformed.
    """
    body = graph["spec"]
    services = body["services"]
    has_planner = may_scale and any(_type(service) == "planner" for service in services.values())
    result = {
        name: _service(name, service, spec, placed, is_scaled=has_planner)
        for name, service in services.items()
    }
    return {**graph, "spec": {**_with_model_cache(body, result, spec), "services": result}}


def _with_model_cache(
    body: Object, services: dict[str, Object], spec: DynamoGraphDeploymentRequestSpec
) -> Object:
    """The spec of the graph with the PVC of the model, which workers and frontends mount like the profiler.

    A mount of the graph's own at that path stays. Frontends read the tokenizer.
    """
    cache = model_cache(spec)
    if cache is None:
        return body
    (claim, folder), is_used = cache, False
    for name, service in services.items():
        if _type(service) not in {*WORKER_TYPES, "frontend"}:
            continue
        path = f"the graph's spec.services[{name}]"
        mounts = _of_form(list, service, "volumeMounts", path)
        pod = _of_form(dict, service, "extraPodSpec", path)
        container = _of_form(dict, pod, "mainContainer", f"{path}.extraPodSpec")
        own = _of_form(list, container, "volumeMounts", f"{path}.extraPodSpec.mainContainer")
        folders = {
            str(mount.get(field, "")).rstrip("/")
            for field, present in (("mountPoint", mounts), ("mountPath", own))
            for mount in present
            if isinstance(mount, dict)
        }
        if folder.rstrip("/") not in folders:
            service["volumeMounts"] = [*mounts, {"name": claim, "mountPoint": folder}]
            is_used = True
    claims = _of_form(list, body, "pvcs", "the graph's spec")
    declared = {entry.get("name") for entry in claims if isinstance(entry, dict)}
    if claim in declared or not is_used:
        return body
    return {**body, "pvcs": [*claims, {"name": claim, "create": False}]}


def deployed(
    request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec, at: Key
) -> Object:
    """Return the graph to create.

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
    """The labels of a graph or ConfigMap that identify its request."""
    metadata = request.metadata
    return {
        labels.REQUEST: names.label_value(metadata.name),
        labels.REQUEST_NAMESPACE: metadata.namespace,
    }


def is_own_config_map(request: DynamoGraphDeploymentRequest, live: Output) -> bool:
    """Whether a ConfigMap was created for a request of this name, present or former."""
    return tracking(request).items() <= live.metadata.labels.items() and not (
        live.metadata.controller and not controls(request, live)
    )


def new_names(
    request: DynamoGraphDeploymentRequest,
    manifests: Iterable[Object],
    present: Mapping[str, Output],
) -> dict[str, str]:
    """Map the names of ConfigMaps that are taken by others to new names; `present` are the existing ones."""
    renamed: dict[str, str] = {}
    for manifest in manifests:
        name: str = manifest["metadata"]["name"]
        live = present.get(name)
        if live is not None and not is_own_config_map(request, live):
            renamed[name] = names.dns_subdomain(f"{name}-{request.metadata.name}")
    return renamed


def renamed_config_maps(
    request: DynamoGraphDeploymentRequest, present: Mapping[str, Output]
) -> dict[str, str]:
    """New names, by the old ones, for ConfigMaps in the status whose names others have taken.

    The names were checked when the results were read, unless the namespace could not be read then.
    """
    if request.status.generated_deployment is None:
        return {}
    return new_names(request, named_config_maps(request.status.additional_resources), present)


def config_map(request: DynamoGraphDeploymentRequest, manifest: Object, namespace: str) -> Object:
    """Return a ConfigMap from the profiling results, as it is applied.

    Raises:
        BadOutput: its labels or annotations are not a mapping.
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
    """Return a list or mapping; empty if it is not set."""
    value = parent.get(name) or form()
    if not isinstance(value, form):
        raise BadOutput(f"{path}.{name} is not a {_FORMS[form]}")
    return value


def _service(
    service_name: str,
    service: Object,
    spec: DynamoGraphDeploymentRequestSpec,
    placed: Object,
    *,
    is_scaled: bool,
) -> Object:
    result, is_worker = dict(service), _type(service) in WORKER_TYPES
    if is_scaled and is_worker and "scalingAdapter" not in result:
        result["scalingAdapter"] = {"enabled": True}
    if is_worker and (more := _missing_variables(worker_variables(spec), result.get("envs") or [])):
        result["envs"] = [*(result.get("envs") or []), *more]
    takes_all = is_worker and not spec.use_mocker
    placement = {name: placed[name] for name in placed if takes_all or name == "imagePullSecrets"}
    if placement:
        pod: Object = dict(result.get("extraPodSpec") or {})
        path = f"the graph's spec.services[{service_name}].extraPodSpec"
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
            result["extraPodSpec"] = pod
    return result


def _form(value: object) -> bytes:
    """Encode a value so that equal values have equal bytes, which a set can contain."""
    return msgspec.json.encode(value, order="deterministic")


def _missing_variables(requested: Iterable[Object], present: Iterable[Object]) -> list[Object]:
    """The requested variables that are not present."""
    present_names = {env.get("name") for env in present}
    return [env for env in requested if env.get("name") not in present_names]


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
    """Read the profiling results and complete their graph. `placed` as in `completed`.

    Raises:
        BadOutput: the results contain no usable graph.
    """
    name = request.metadata.name
    config_map = names.profiling_output(name)
    output = parse_results(data, config_map, is_mocked=spec.use_mocker, name=name)
    return dataclasses.replace(output, graph=completed(output.graph, spec, placed))


def with_new_names(output: ProfilingResult, renamed: Mapping[str, str]) -> ProfilingResult:
    """Rename ConfigMaps in the output and in its graph. `renamed` maps old names to new ones."""
    if not renamed:
        return output
    graph = output.graph | {"spec": _with_names(output.graph.get("spec"), renamed)}
    return output.renamed(graph, renamed)


_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""Characters that JSON allows and YAML requires to be escaped (YAML 1.2, 5.1)."""


def completed_base(text: str, spec: DynamoGraphDeploymentRequestSpec, placed: Object) -> str | None:
    """Return the completed base graph as JSON, which is YAML; None if nothing has to be, or can be, added.

    `placed` as in `completed`.
    """
    try:
        graphs = list(documents("the base graph", text))
        if len(graphs) != 1 or not _is_graph(graphs[0]):
            return None
        # Temporary graphs run the real engines, even if the final one uses the mocker.
        result = completed(graphs[0], replace(spec, use_mocker=False), placed, may_scale=False)
    except BadOutput:
        return None
    if result == graphs[0]:
        return None
    text = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def base_config_map(request: DynamoGraphDeploymentRequest, key: str, text: str) -> Object:
    """Return the ConfigMap with the completed base graph under that key, without owner references."""
    metadata = request.metadata
    manifest: Object = {
        "metadata": {"name": names.profiling_base(metadata.name, metadata.uid)},
        "data": {key: text},
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
    """Whether the fields of a service that `completed` extends are well-formed."""
    if not isinstance(value, dict):
        return False
    pod, envs = value.get("extraPodSpec") or {}, value.get("envs") or []
    return (
        isinstance(pod, dict)
        and isinstance(envs, list)
        and all(isinstance(env, dict) for env in envs)
    )
