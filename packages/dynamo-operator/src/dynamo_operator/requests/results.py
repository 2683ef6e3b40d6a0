"""The results of profiling: read from the output of the Job, and made into the graph of the request."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from dynamo_operator import labels, names
from dynamo_operator.component.api import GROUP, LATER, VERSION, WORKER_TYPES
from dynamo_operator.documents import VALUES_LIMIT, documents
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, extras
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.render import BASE_FILE, model_cache, placement, worker_variables
from dynamo_operator.shared.problems import is_later_version
from kube_runtime.errors import ConfigErrors, DecodeError
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import decode

ADDITIONAL_LIMIT_BYTES = 250_000
"""Bytes of all additional ConfigMaps as JSON."""

_GRAPH_LIMIT_BYTES = 900_000
"""Bytes of the graph as JSON: etcd stores 1.5 MiB, and the request contains ConfigMaps too."""
STATUS_LIMIT = 16 * 1024
"""Characters of a profiler's status file, which has a few lines; a longer one is ignored."""
_TEXT_LIMIT = 200
_NAMED = 10


class BadOutput(ValueError):
    """The output of the profiler is unusable; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ProfilingResult:
    """A graph, in the version of its request, and its ConfigMaps.

    `ignored` are the other documents, as `Kind name`. `without_effect` are warnings about parts of
    `spec.overrides.dgd`.
    """

    graph: Object
    config_maps: tuple[Object, ...] = ()
    ignored: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about the output."""
        if not self.ignored:
            return self.without_effect
        skipped = ", ".join(self.ignored[:_NAMED])
        return (f"Only ConfigMaps are created with the graph; skipped: {skipped}", *self.without_effect)


@dataclass(frozen=True, slots=True)
class ProfilingProgress:
    """The progress that the profiler reports; texts are "" if it reports none."""

    phase: str = ""
    message: str = ""
    has_failed: bool = False


def progress(data: Mapping[str, str]) -> ProfilingProgress:
    """Parse the profiler's status file; empty if it is missing or unreadable."""
    text, status = data.get(api.STATUS_FILE, ""), None
    with suppress(BadOutput):
        if len(text) <= STATUS_LIMIT:  # parsed repeatedly, in the event loop
            status = next(iter(_documents(api.STATUS_FILE, text, STATUS_LIMIT)), None)
    if not isinstance(status, dict):
        return ProfilingProgress()
    has_failed = status.get("status") == "failed"
    return ProfilingProgress(
        phase=_line(status.get("phase")),
        message=_line((has_failed and status.get("error")) or status.get("message")),
        has_failed=has_failed,
    )


def named_config_maps(kept: Iterable[Object]) -> Iterator[Object]:
    """Return the ConfigMaps with a name; users may have edited the stored objects."""
    return (manifest for manifest in kept if manifest.get("kind") == "ConfigMap" and _name(manifest))


def _documents(file: str, text: str, most_values: int = VALUES_LIMIT) -> list[Any]:
    try:
        return [document.value for document in documents(file, text, most_values)]
    except ConfigErrors as errors:
        raise _no_graph(file, f"invalid YAML: {errors.exceptions[0]}") from errors


def _objects(file: str, text: str) -> list[Object]:
    values = _documents(file, text)
    return [value for value in values if isinstance(value, dict) and isinstance(value.get("kind"), str)]


def _no_graph(file: str, text: str) -> BadOutput:
    return BadOutput(f"failed to extract DGD from {file}: {text}")


def _graph(file: str, document: Object, name: str) -> Object:
    if is_later_version(document):
        document = _converted(file, document)
    metadata = document.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    kept = {name: given[name] for name in ("name", "labels", "annotations") if given.get(name)}
    graph: Object = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": DynamoGraphDeployment.KIND.name,
        "metadata": {"name": name} | kept,
        "spec": document.get("spec"),
    }
    encoded = msgspec.json.encode(graph)
    try:
        read = decode(DynamoGraphDeployment, encoded)
    except DecodeError as error:
        raise _no_graph(file, f"failed to convert to DynamoGraphDeployment: {error.message}") from error
    _require_size(file, encoded)
    if not read.spec.services:
        raise _no_graph(file, "failed to convert to DynamoGraphDeployment: it has no services")
    return graph


def _converted(file: str, document: Object) -> Object:
    # With the conversion of versions, which most operators do not need.
    from dynamo_operator.shared.seen import seen
    from dynamo_operator.versions.shapes import ConversionError

    try:
        return seen(document)
    except ConversionError as error:
        raise _no_graph(file, f"failed to convert to DynamoGraphDeployment: {error}") from error


def _name(document: Object) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _line(value: object) -> str:
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return line if len(line) <= _TEXT_LIMIT else f"{line[: _TEXT_LIMIT - 1]}…"


_LISTS = ("tolerations", "imagePullSecrets")
_CONTENT = ("data", "binaryData", "immutable")
_SINGLE = ("affinity", "runtimeClassName")
_FORMS: dict[type, str] = {dict: "mapping", list: "list"}
Form = TypeVar("Form", Object, list[object])
_REFERENCES = frozenset(("configMap", "configMapRef", "configMapKeyRef"))


def target(request: Request, spec: RequestSpec) -> Key:
    """Namespace and name of the graph, whether or not it exists."""
    metadata, overrides = request.metadata, spec.deployment_overrides
    given = (overrides.name if overrides else None) or extras.accepted(request).overrides.graph_name
    name = given or metadata.name
    return Key((overrides.namespace if overrides else None) or metadata.namespace, name)


# Fields that profiling chose for a service take precedence, since they were measured; those of the
# profiling pods fill in what is unset.
def completed(graph: Object, spec: RequestSpec, *, may_scale: bool = True) -> Object:
    """Return the graph with the placement of the profiling pod, and the model's PVC.

    With `may_scale`, the scaling adapters that a planner needs are enabled.

    Raises:
        BadOutput: the pod of a service is malformed.
    """
    body = graph["spec"]
    types = {service.get("componentType") for service in body["services"].values()}
    result = {
        name: _service(name, service, spec, is_scaled=may_scale and "planner" in types)
        for name, service in body["services"].items()
    }
    return {**graph, "spec": {**_with_model_cache(body, result, spec), "services": result}}


def _with_model_cache(body: Object, services: dict[str, Object], spec: RequestSpec) -> Object:
    # Workers, and frontends, which read the tokenizer, mount the PVC of the model like the profiler, unless
    # the graph mounts something at that path.
    cache = model_cache(spec)
    if cache is None:
        return body
    (claim, folder), is_used = cache, False
    for name, service in services.items():
        if service.get("componentType") not in {*WORKER_TYPES, "frontend"}:
            continue
        path, mounts = f"the graph's spec.services[{name}].extraPodSpec", service.get("volumeMounts") or []
        container = _of_form(dict, service.get("extraPodSpec") or {}, "mainContainer", path)
        own = _of_form(list, container, "volumeMounts", f"{path}.mainContainer")
        folders = [mount.get("mountPoint") for mount in mounts]
        folders += [mount.get("mountPath") for mount in own if isinstance(mount, dict)]
        if folder.rstrip("/") not in {str(present).rstrip("/") for present in folders}:
            service["volumeMounts"] = [*mounts, {"name": claim, "mountPoint": folder}]
            is_used = True
    claims = body.get("pvcs") or []
    if not is_used or claim in {declared.get("name") for declared in claims}:
        return body
    return {**body, "pvcs": [*claims, {"name": claim, "create": False}]}


def deployed(request: Request, spec: RequestSpec, at: Key) -> Object:
    """Return the graph to create, in v1alpha1.

    Raises:
        ValueError: the request has no graph in its status.
    """
    generated = request.status.generated_deployment
    if generated is None:
        raise ValueError("status.generatedDeployment is not set")
    if is_later_version(generated):
        from dynamo_operator.shared.seen import seen  # with the conversion of versions

        generated = seen(generated)
    overrides = spec.deployment_overrides or api.DeploymentOverrides()
    metadata = _metadata(request, generated.get("metadata") or {}, at, overrides)
    version, kind = generated["apiVersion"], generated["kind"]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": generated.get("spec")}


def _metadata(request: Request, given: Object, at: Key, overrides: api.DeploymentOverrides) -> Object:
    return {
        "name": at.name,
        "namespace": at.namespace,
        "labels": {
            **_of_form(dict, given, "labels", "metadata"),
            labels.MANAGED_BY: labels.MANAGER,
            **overrides.labels,
            **tracking(request),
        },
        "annotations": {
            **_of_form(dict, given, "annotations", "metadata"),
            **overrides.annotations,
            labels.REQUEST_UID: request.metadata.uid,
        },
    }


def tracking(request: Request) -> dict[str, str]:
    """The labels of a graph or ConfigMap that identify its request."""
    metadata = request.metadata
    return {labels.REQUEST: names.label_value(metadata.name), labels.REQUEST_NAMESPACE: metadata.namespace}


# A graph may mount one of a former request, also a graph that its user created, which owns nothing.
def is_own_config_map(request: Request, live: api.Output) -> bool:
    """Whether a ConfigMap was created for this request, and not for a former one of its name."""
    metadata, own = live.metadata, request.metadata
    made_for = metadata.annotations.get(labels.REQUEST_UID)
    if made_for is None:  # by an earlier operator: a former request's is older than this request
        is_present = (metadata.creation_timestamp or "") >= (own.creation_timestamp or "")
    else:
        is_present = made_for == own.uid
    owners = {owner.uid for owner in metadata.owner_references if owner.controller or made_for is None}
    return is_present and tracking(request).items() <= metadata.labels.items() and {own.uid} >= owners


def with_free_names(
    request: Request, result: ProfilingResult, present: Mapping[str, api.Output]
) -> ProfilingResult:
    """Rename the ConfigMaps of a result whose names are taken by others, also in its graph.

    `present` are the existing ConfigMaps. Returns the same result if no name is taken.
    """
    renamed: dict[str, str] = {}
    for manifest in named_config_maps(result.config_maps):
        live = present.get(name := _name(manifest))
        if live is not None and not is_own_config_map(request, live):
            renamed[name] = names.dns_subdomain(f"{name}-{request.metadata.name}")
    if not renamed:
        return result
    config_maps = (
        manifest | {"metadata": manifest["metadata"] | {"name": renamed[_name(manifest)]}}
        if _name(manifest) in renamed
        else manifest
        for manifest in result.config_maps
    )
    graph = result.graph | {"spec": _with_names(result.graph.get("spec"), renamed)}
    return replace(result, graph=graph, config_maps=tuple(config_maps))


def _with_names(value: object, renamed: Mapping[str, str]) -> object:
    match value:
        case dict():
            return {
                key: {**child, "name": renamed[child["name"]]}
                if key in _REFERENCES and isinstance(child, dict) and child.get("name") in renamed
                else _with_names(child, renamed)
                for key, child in value.items()
            }
        case list():
            return [_with_names(child, renamed) for child in value]
        case _:
            return value


def config_map(request: Request, manifest: Object, namespace: str) -> Object:
    """Return a ConfigMap from the profiling results, as it is applied.

    Raises:
        BadOutput: its labels or annotations are not a mapping.
    """
    given, kept = manifest["metadata"], {name: manifest[name] for name in _CONTENT if name in manifest}
    metadata = _metadata(request, given, Key(namespace, given["name"]), api.DeploymentOverrides())
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **kept}


def _of_form(form: type[Form], parent: Object, name: str, path: str) -> Form:
    value = parent.get(name) or form()
    if not isinstance(value, form):
        raise BadOutput(f"{path}.{name} is not a {_FORMS[form]}")
    return value


def _service(service_name: str, service: Object, spec: RequestSpec, *, is_scaled: bool) -> Object:
    result, is_worker = dict(service), service.get("componentType") in WORKER_TYPES
    if spec.runtime_version_override:
        result.setdefault("runtimeVersionOverride", spec.runtime_version_override)
    if is_scaled and is_worker and "scalingAdapter" not in result:
        result["scalingAdapter"] = {"enabled": True}
    if is_worker:
        present_envs = result.get("envs") or []
        present_names = {env.get("name") for env in present_envs}
        if unset := [env for env in worker_variables(spec) if env.get("name") not in present_names]:
            result["envs"] = [*present_envs, *unset]
    takes_all = is_worker and not spec.use_mocker
    placed = placement(spec.profiling_config)
    placed = {name: placed[name] for name in placed if takes_all or name == "imagePullSecrets"}
    if placed:
        pod: Object = dict(result.get("extraPodSpec") or {})
        path = f"the graph's spec.services[{service_name}].extraPodSpec"
        for name in _LISTS:
            present = _of_form(list, pod, name, path)
            present_forms = set(map(_form, present))
            more = [entry for entry in placed.get(name, ()) if _form(entry) not in present_forms]
            if more:
                pod[name] = [*present, *more]
        if "nodeSelector" in placed:
            chosen = _of_form(dict, pod, "nodeSelector", path)
            pod["nodeSelector"] = {**placed["nodeSelector"], **chosen}
        pod |= {name: placed[name] for name in _SINGLE if name in placed and name not in pod}
        if pod:
            result["extraPodSpec"] = pod
    return result


def _form(value: object) -> bytes:
    """Encode a value so that equal values have equal bytes, which a set can contain."""
    return msgspec.json.encode(value, order="deterministic")


# The text comes from a program in an image of the user and is untrusted. Error messages name the
# file and the place of a value that cannot be used.
def read_output(request: Request, spec: RequestSpec, data: Mapping[str, str]) -> ProfilingResult:
    """Read the data of the output ConfigMap, and complete the graph; one without a name has the request's.

    Raises:
        BadOutput: there is no usable graph, or its ConfigMaps do not fit into the status.
    """
    name, file = request.metadata.name, api.MOCKED_RESULTS_FILE if spec.use_mocker else api.RESULTS_FILE
    is_of_later_operator = api.recorded(request) is None and file not in data and api.FINAL_FILE in data
    if extras.in_v1beta1(request) or is_of_later_operator:
        file = api.FINAL_FILE
    if file not in data:
        raise BadOutput(f"key {file} not found in ConfigMap {names.profiling_output(name)}")
    graphs: list[Object] = []
    config_maps: list[Object] = []
    ignored: list[str] = []
    for document in _objects(file, data[file]):
        if document["kind"] == DynamoGraphDeployment.KIND.name:
            graphs.append(document)
        elif document["kind"] == "ConfigMap" and _name(document):
            config_maps.append(document)
        else:
            ignored.append(f"{document['kind']} {_name(document)}".strip())
    if not graphs:
        raise _no_graph(file, "no DynamoGraphDeployment found in YAML content")
    generated, without_effect = _graph(file, graphs[-1], name), tuple[str, ...]()
    if override := extras.accepted(request).overrides.dgd:
        generated, without_effect = _overridden(file, generated, override)
    graph = completed(generated, spec)
    size = len(msgspec.json.encode(config_maps))
    if size > ADDITIONAL_LIMIT_BYTES:
        raise BadOutput(
            f"ConfigMaps of the graph have {size} bytes as JSON (limit {ADDITIONAL_LIMIT_BYTES}, "
            "so that they fit in the status): reduce them, or store them separately"
        )
    if extras.in_v1beta1(request):
        graph = _in_v1beta1(file, graph)
    return ProfilingResult(graph, tuple(config_maps), tuple(ignored), without_effect)


def _in_v1beta1(file: str, graph: Object) -> Object:
    from dynamo_operator.versions.conversion import convert
    from dynamo_operator.versions.shapes import ConversionError

    try:
        later = convert(graph, f"{GROUP}/{LATER}")
    except ConversionError as error:
        raise _no_graph(file, f"failed to convert to {LATER}: {error}") from error
    _require_size(file, msgspec.json.encode(later))
    return later


def _require_size(file: str, encoded: bytes) -> None:
    if len(encoded) > _GRAPH_LIMIT_BYTES:
        limit = f"(limit {_GRAPH_LIMIT_BYTES}, so that it fits in the status)"
        raise _no_graph(file, f"it has {len(encoded)} bytes as JSON {limit}")


def _overridden(file: str, graph: Object, override: Object) -> tuple[Object, tuple[str, ...]]:
    # With the conversion of versions, which most operators do not need.
    from dynamo_operator.requests.graph_override import OverrideError, overridden, schemas

    try:
        result = overridden(graph, override, schemas())
    except OverrideError as error:
        raise BadOutput(f"spec.overrides.dgd: {error}") from error
    name: str = graph["metadata"]["name"]
    warnings = (f"spec.overrides.dgd: {warning.path}: {warning.message}" for warning in result.warnings)
    return _graph(file, result.graph, name), tuple(warnings)


_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""Characters that JSON allows and YAML requires to be escaped (YAML 1.2, 5.1)."""


# The base graph, from which profiling starts, is completed in the same way, because a profiler
# deploys temporary graphs and has no fields for tolerations and the like.
def completed_base(text: str, spec: RequestSpec) -> str | None:
    """Return the completed base graph as JSON, which is YAML; None if nothing has to be, or can be, added."""
    try:
        graphs = _objects("the base graph", text)
        if [graph["kind"] for graph in graphs] != [DynamoGraphDeployment.KIND.name]:
            return None
        if not decode(DynamoGraphDeployment, msgspec.json.encode(graphs[0])).spec.services:
            return None
        # Temporary graphs run the real engines, even if the final one uses the mocker.
        result = completed(graphs[0], structs.replace(spec, use_mocker=False), may_scale=False)
    except (BadOutput, DecodeError):
        return None
    if result == graphs[0]:
        return None
    text = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def base_config_map(
    request: Request, spec: RequestSpec, present: Mapping[str, Mapping[str, str]]
) -> Object | None:
    """Return the ConfigMap with the completed base graph, without owner references.

    None if profiling uses that of the user. `present` are the data of existing ConfigMaps, by name.
    """
    metadata, given = request.metadata, spec.profiling_config.config_map_ref
    text = present.get(given.name, {}).get(given.key) if given is not None else None
    if not text or (completed_text := completed_base(text, spec)) is None:
        return None
    name = {"name": names.profiling_base(metadata.name, metadata.uid)}
    return config_map(request, {"metadata": name, "data": {BASE_FILE: completed_text}}, metadata.namespace)
