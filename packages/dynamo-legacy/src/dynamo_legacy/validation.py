"""Validate objects of the older generation: all problems at once, each with its path.

Controllers, webhooks and `dynamoctl lint` share these rules. Those of a component are today's, applied to
the translated component. The configuration of a graph is unknown here, so overrides of a DynamoDeployment
are validated alone.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import msgspec

from dynamo_legacy import api
from dynamo_legacy.build.job import build_seconds
from dynamo_legacy.build.source import image_tag, parse_reference, pod_fields
from dynamo_legacy.names import component_name, nim_name, tag_parts
from dynamo_legacy.render import MOST_SERVICES, GraphConfig, merge_patched
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import as_component, http_port, ignored_switches
from dynamo_operator.component import validate_pod
from dynamo_operator.component.api import DynamoComponentDeploymentSpec
from dynamo_operator.component.service import VARIABLE
from dynamo_operator.component.validate import spec_problems
from dynamo_operator.graph.validate import shared_size_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import (
    MOST_PROBLEMS,
    MOST_REPLICAS,
    Problem,
    ProblemKind,
    first_problems,
    is_dns_label,
    name_problems,
)
from kube_runtime.types.meta import Metadata, Object, cut, from_plain

T = TypeVar("T")

_SOME_IMAGE = api.DynamoNimSpec(image="image")
"""No rule depends on the image."""
_EXAMPLES = {"mountPoint": "/data", "size": "10Gi", "volumeAccessMode": "ReadWriteOnce"}
_BUILD_POD: validate_pod.Shape = {
    "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [validate_pod.ENTRIES]}},
    "serviceAccountName": str,
}
"""The part of a pod spec that the Job of a build merges; the API server validates the rest."""
_MOST_OF_NAME: Final = 80
"""Characters of an invalid name in a message."""
_LONGEST_MESSAGE: Final = 1000
_AT = " - at `"
"""Separates message and path in an error of msgspec."""


def nim_problems(
    nim: api.DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings, most: int = MOST_PROBLEMS
) -> tuple[Problem, ...]:
    """The problems of a component, sorted by path."""
    problems = chain(
        _object_name_problems(nim.metadata.name, "metadata.name"),
        name_problems(nim.spec.dynamo_nim, "spec.dynamoNim", "a DynamoNim"),
        _component_problems(nim, "spec", settings, legacy),
        _missing_bound(nim.spec.autoscaling),
    )
    return first_problems(problems, most)


def deployment_problems(
    deployment: api.DynamoDeployment,
    settings: RenderSettings,
    legacy: LegacySettings,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """The problems of a deployment that no configuration of its graph can fix, sorted by path."""
    problems = chain(
        _error(nim_name, deployment.spec.dynamo_nim, "spec.dynamoNim"),
        validate_pod.shared_environment_problems(_with_config(deployment.spec.envs), "spec.envs"),
        _port_problems(deployment.spec.envs, "spec.envs"),
        _service_problems(deployment, settings, legacy),
    )
    return first_problems(problems, most)


def request_problems(
    request: api.DynamoNimRequest, settings: RenderSettings, most: int = MOST_PROBLEMS
) -> tuple[Problem, ...]:
    """The problems of a request that no setting of builds can fix, sorted by path."""
    problems = chain(_request_problems(request), _build_pod_problems(request, settings))
    return first_problems(problems, most)


def nim_warnings(nim: api.DynamoNimDeployment) -> Iterator[Problem]:
    """Fields of a component without effect; none for a component of a DynamoDeployment."""
    if nim.metadata.controller is None:
        yield from _ignored(nim.spec, "spec")


def deployment_warnings(deployment: api.DynamoDeployment) -> Iterator[Problem]:
    """Fields of a deployment's services without effect. The deployment has no problems."""
    yield from _opaque(deployment.spec.envs, "spec.envs")
    for name, override in sorted(deployment.spec.services.items()):
        yield from _ignored(_overriding(override), f"spec.services.{name}")


def shared_size_problem(
    deployment: api.DynamoDeployment, graph: GraphConfig, settings: RenderSettings
) -> str:
    """The problem that shared variables, copied to each component, are too large together; "" if not."""
    variables, services = deployment.spec.envs, len(graph.services)
    return "\n".join(map(str, shared_size_problems(variables, services, settings)))


def _component_problems(
    nim: api.DynamoNimDeployment, path: str, settings: RenderSettings, legacy: LegacySettings
) -> Iterator[Problem]:
    """Problems of a component whose spec is at `path`; first of the JSON types that the translation needs."""
    wrong_types = (
        *validate_pod.shape_problems(nim.spec.envs, validate_pod.ENVIRONMENT, f"{path}.envs"),
        *validate_pod.shape_problems(nim.spec.extra_pod_spec, validate_pod.POD, f"{path}.extraPodSpec"),
    )
    if wrong_types:
        yield from wrong_types
        return
    spec = msgspec.structs.replace(nim.spec, envs=_with_config(nim.spec.envs))
    checked = msgspec.structs.replace(nim, spec=spec)
    component = as_component(checked, _SOME_IMAGE, settings, legacy)
    yield from spec_problems(component.spec, path, component.metadata.namespace, settings)
    yield from _port_problems(nim.spec.envs, f"{path}.envs")
    yield from _claim_problems(nim.spec.pvc, f"{path}.pvc")
    yield from _autoscaling_problems(nim.spec.autoscaling, f"{path}.autoscaling")


def _with_config(environment: tuple[Object, ...]) -> tuple[Object, ...]:
    """The variables, without a configuration that is not a JSON object: processes also read YAML."""
    return tuple({**entry, "value": "{}"} if _is_opaque(entry) else entry for entry in environment)


def _is_opaque(entry: Object) -> bool:
    """Whether a variable is a configuration of services that the operator cannot read."""
    text = entry.get("value") if entry.get("name") == VARIABLE else None
    if not text or not isinstance(text, str):
        return False
    try:
        return not isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return True


def _object_name_problems(name: str, path: str) -> Iterator[Problem]:
    """A problem if a name is invalid for an object of a component; those for Services are the strictest."""
    if not is_dns_label(name):
        message = (
            f'invalid name "{cut(name, _MOST_OF_NAME)}" (expected at most 63 lower-case letters, digits '
            'and "-", with a letter or digit at both ends)'
        )
        yield Problem(path, message)


def _service_problems(
    deployment: api.DynamoDeployment, settings: RenderSettings, legacy: LegacySettings
) -> Iterator[Problem]:
    services = deployment.spec.services
    if len(services) > MOST_SERVICES:
        yield Problem("spec.services", f"must have at most {MOST_SERVICES}, got {len(services)}")
        return
    owners = Counter(map(str.lower, services))
    for service, override in services.items():
        name = component_name(deployment.metadata.name, service)
        path = f"spec.services.{cut(service, _MOST_OF_NAME)}"
        if not is_dns_label(name):
            yield from _object_name_problems(name, path)
        elif owners[service.lower()] > 1:
            message = f'the name "{name}" is that of another service too'
            yield Problem(path, message, ProblemKind.DUPLICATE)
        else:
            metadata = Metadata(name, deployment.metadata.namespace)
            yield from _override_problems(metadata, override, path, settings, legacy)


def _override_problems(
    metadata: Metadata, override: Object, path: str, settings: RenderSettings, legacy: LegacySettings
) -> Iterator[Problem]:
    try:
        spec = _overriding(override)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(_AT)
        yield Problem(path + place.rstrip("`").removeprefix("$"), message)
        return
    yield from _component_problems(api.DynamoNimDeployment(metadata, spec), path, settings, legacy)


def _overriding(override: Object) -> api.DynamoNimDeploymentSpec:
    """Without the keys that it sets to null. Raises: msgspec.ValidationError for a wrong type."""
    return from_plain(merge_patched({}, override), api.DynamoNimDeploymentSpec)


def _port_problems(environment: tuple[Object, ...], path: str) -> Iterator[Problem]:
    for index, entry in enumerate(environment):
        text = entry.get("value") if entry.get("name") == "PORT" else None
        if text and isinstance(text, str) and http_port((entry,)) is None:
            shown = cut(text, _MOST_OF_NAME)
            message = f'invalid port "{shown}" (expected a number from 1 to 65535)'
            yield Problem(f"{path}[{index}].value", message)


def _claim_problems(pvc: api.Pvc | None, path: str) -> Iterator[Problem]:
    if pvc is None:
        return
    for field, kind, name in (
        ("name", "a PVC", pvc.name),
        ("storageClass", "a StorageClass", pvc.storage_class),
    ):
        if name:
            yield from name_problems(name, f"{path}.{field}", kind)
    needed: Object = {"mountPoint": pvc.mount_point}
    if pvc.create:
        needed |= {"size": pvc.size, "volumeAccessMode": pvc.volume_access_mode}
    for field, value in needed.items():
        if not value:
            message = f"missing {field} (for example {_EXAMPLES[field]})"
            yield Problem(f"{path}.{field}", message, ProblemKind.REQUIRED)


def _autoscaling_problems(autoscaling: api.Autoscaling | None, path: str) -> Iterator[Problem]:
    if autoscaling is None or not autoscaling.enabled:
        return
    least = autoscaling.min_replicas
    if least is not None and least < 0:
        yield Problem(f"{path}.minReplicas", f"must be non-negative, got {least}")
    for field, number in (("minReplicas", least), ("maxReplicas", autoscaling.max_replicas)):
        if number is not None and number > MOST_REPLICAS:
            yield Problem(f"{path}.{field}", f"must be at most {MOST_REPLICAS}, got {number}")
    lowest = max(1, least or 1)
    if autoscaling.max_replicas is not None and autoscaling.max_replicas < lowest:
        bound = f"minReplicas ({lowest})" if lowest > 1 else "1"
        message = f"must be at least {bound}, got {autoscaling.max_replicas}"
        yield Problem(f"{path}.maxReplicas", message)


def _missing_bound(autoscaling: api.Autoscaling | None) -> Iterator[Problem]:
    """An override may leave the upper bound to the graph."""
    if autoscaling is not None and autoscaling.enabled and autoscaling.max_replicas is None:
        message = "missing maxReplicas (for example 4)"
        yield Problem("spec.autoscaling.maxReplicas", message, ProblemKind.REQUIRED)


def _request_problems(request: api.DynamoNimRequest) -> Iterator[Problem]:
    spec = request.spec
    if spec.image:
        yield from _error(tag_parts, spec.bento_tag, "spec.bentoTag")
        yield from _error(parse_reference, spec.image, "spec.image")
    else:
        yield from _error(partial(image_tag, settings=LegacySettings()), request, "spec.bentoTag")
    if spec.docker_config_json_secret_name and not spec.image:
        message = "needs image, for whose registry the Secret is"
        yield Problem("spec.dockerConfigJsonSecretName", message, ProblemKind.REQUIRED)
    if secret := spec.docker_config_json_secret_name:
        yield from name_problems(secret, "spec.dockerConfigJsonSecretName", "a Secret")
    if spec.source is not None:
        yield from _source_problems(spec.source)
        if spec.download_url:
            message = "must not be set together with source"
            yield Problem("spec.downloadUrl", message, ProblemKind.FORBIDDEN)
    yield from _error(build_seconds, spec.image_build_timeout, "spec.imageBuildTimeout")


def _build_pod_problems(request: api.DynamoNimRequest, settings: RenderSettings) -> Iterator[Problem]:
    environment = request.spec.image_builder_extra_container_env
    yield from validate_pod.shape_problems(
        environment, validate_pod.ENVIRONMENT, "spec.imageBuilderExtraContainerEnv"
    )
    pod, path = request.spec.image_builder_extra_pod_spec, "spec.imageBuilderExtraPodSpec"
    yield from validate_pod.shape_problems(pod, _BUILD_POD, path)
    account = pod_fields(pod).get("serviceAccountName") if isinstance(pod, dict) else None
    if isinstance(account, str):
        fields, namespace = {"serviceAccountName": account}, request.metadata.namespace
        component = DynamoComponentDeploymentSpec()
        yield from validate_pod.account_problems(component, fields, namespace, path, settings)


def _source_problems(source: api.Source) -> Iterator[Problem]:
    members: Object = {
        "oci": source.oci,
        "s3": source.s3,
        "http": source.http,
        "pvc": source.pvc,
        "configMap": source.config_map,
    }
    given = [name for name, member in members.items() if member is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        message = f"expected one of {', '.join(members)}, got {got}"
        yield Problem("spec.source", message, ProblemKind.INVALID if given else ProblemKind.REQUIRED)
    for field, kind, name in (
        ("oci.secretName", "a Secret", source.oci and source.oci.secret_name),
        ("s3.secretName", "a Secret", source.s3 and source.s3.secret_name),
        ("http.headerSecretName", "a Secret", source.http and source.http.header_secret_name),
    ):
        if name:
            yield from name_problems(name, f"spec.source.{field}", kind)
    if source.pvc is not None:
        yield from name_problems(source.pvc.claim_name, "spec.source.pvc.claimName", "a PVC")
    if source.config_map is not None:
        yield from name_problems(source.config_map.name, "spec.source.configMap.name", "a ConfigMap")


def _opaque(environment: tuple[Object, ...], path: str) -> Iterator[Problem]:
    for index, entry in enumerate(environment):
        if _is_opaque(entry):
            message = "not a JSON object: processes get it as it is, without their Dynamo namespace"
            yield Problem(f"{path}[{index}].value", message)


def _ignored(spec: api.ComponentSpec, path: str) -> Iterator[Problem]:
    yield from _opaque(spec.envs, f"{path}.envs")
    if spec.run_mode is not None:
        yield Problem(f"{path}.runMode", "has no effect: no process has ever read it")
    if spec.external_services:
        yield Problem(f"{path}.externalServices", "has no effect: no process has ever read it")
    if spec.monitor_exporter:
        message = "has no effect: the image of this side container is gone"
        yield Problem(f"{path}.monitorExporter", message)
    for key in ignored_switches(spec.annotations):
        yield Problem(f"{path}.annotations[{key}]", "has no effect: what it switched is gone")


def _error(read: Callable[[T], object], value: T, path: str) -> Iterator[Problem]:
    try:
        read(value)
    except ValueError as error:
        yield Problem(path, cut(str(error), _LONGEST_MESSAGE))
