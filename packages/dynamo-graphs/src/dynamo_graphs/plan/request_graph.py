"""The graph of a request: the result of profiling, with what the user wants of it beyond that.

What profiling chose for a service takes precedence, since it was measured so; what the user set for the
profiling pods applies where nothing else is set.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.api.roles import WORKER_TYPES
from dynamo_graphs.plan.request_output import BadOutput
from kube_runtime.kind import Key, Object

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
    has_planner = may_scale and any(_type(each) == "planner" for each in services.values())
    done = {
        name: _service(name, each, spec, placed, is_scaled=has_planner)
        for name, each in services.items()
    }
    return {**graph, "spec": {**body, "services": done}}


def with_names(graph: Object, renamed: Mapping[str, str]) -> Object:
    """The graph with references to ConfigMaps that have another name now."""
    return graph | {"spec": _with_names(graph["spec"], renamed)} if renamed else graph


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


def config_map(request: DynamoGraphDeploymentRequest, found: Object, namespace: str) -> Object:
    """A ConfigMap that profiling made for the graph, as it is applied.

    Raises:
        BadOutput: its labels or annotations are none.
    """
    metadata = found["metadata"]
    kept: Object = {name: found[name] for name in _CONTENT if name in found}
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
    found = parent.get(name) or form()
    if not isinstance(found, form):
        raise BadOutput(f"{path}.{name} is not a {_FORMS[form]}")
    return found


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
    wanted = placed if is_worker and not spec.use_mocker else _only(placed, "imagePullSecrets")
    if wanted:
        pod: Object = dict(done.get("extraPodSpec") or {})
        path = f"the graph's spec.services[{name_}].extraPodSpec"
        for name in _LISTS:
            here = _of_form(list, pod, name, path)
            known = set(map(_form, here))
            more = [each for each in wanted.get(name, ()) if _form(each) not in known]
            if more:
                pod[name] = [*here, *more]
        if "nodeSelector" in wanted:
            chosen = _of_form(dict, pod, "nodeSelector", path)
            pod["nodeSelector"] = {**wanted["nodeSelector"], **chosen}
        pod |= {name: wanted[name] for name in _SINGLE if name in wanted and name not in pod}
        if pod:
            done["extraPodSpec"] = pod
    return done


def _form(value: object) -> bytes:
    """The same bytes for equal values: a set of them is searched faster than a list of objects."""
    return msgspec.json.encode(value, order="deterministic")


def _unknown(wanted: Iterable[Object], here: Iterable[Object]) -> list[Object]:
    """The variables that are not set yet."""
    known = {each.get("name") for each in here}
    return [each for each in wanted if each.get("name") not in known]


def _only(placed: Object, name: str) -> Object:
    return {name: placed[name]} if name in placed else {}


def _with_names(value: object, renamed: Mapping[str, str]) -> object:
    match value:
        case dict():
            return {
                key: _renamed(each, renamed) if key in _REFERENCES else _with_names(each, renamed)
                for key, each in value.items()
            }
        case list():
            return [_with_names(each, renamed) for each in value]
        case _:
            return value


def _renamed(reference: object, renamed: Mapping[str, str]) -> object:
    if not isinstance(reference, dict) or reference.get("name") not in renamed:
        return reference
    return {**reference, "name": renamed[reference["name"]]}
