"""Translate a DynamoNimDeployment to a component of today, for rendering and conversion.

The component has all settings of the user under today's names; translation never fails.
`dynamo_legacy.render` adds what a component cannot express: ports of the Service, labels, names of
variables.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from dynamo_legacy.api import DynamoNimDeployment, DynamoNimDeploymentSpec, DynamoNimSpec
from dynamo_legacy.settings import LegacySettings, host_suffix
from dynamo_operator import labels
from dynamo_operator.component import api
from dynamo_operator.component.objects import merged
from dynamo_operator.component.service import VARIABLE, config_of, configured
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Metadata, Object, amount

HTTP_PORT = 3000
_CONFIG_PATH = "DYNAMO_CONFIG_PATH"
_PREFIXES = ("yatai.ai/", "nvidia.com/")
"""Prefixes of annotations that switch features: a later version renamed the first to the second."""
_DIGITS = 5
"""Of the largest port."""
_STRATEGIES = {
    "Recreate": {labels.STRATEGY: "Recreate"},
    "RampedSlowRollout": {labels.MAX_SURGE: "1", labels.MAX_UNAVAILABLE: "0"},
    "BestEffortControlledRollout": {labels.MAX_SURGE: "0", labels.MAX_UNAVAILABLE: "20%"},
}
_POD_SWITCHES = {
    "enable-host-ipc": "hostIPC",
    "enable-host-network": "hostNetwork",
    "enable-host-pid": "hostPID",
}
_CONTAINER_SWITCHES: Mapping[str, Object] = {
    "enable-container-privileged": {"privileged": True},
    "enable-container-ptrace": {"capabilities": {"add": ["SYS_PTRACE"]}},
    "run-container-as-root": {"runAsUser": 0, "runAsNonRoot": False},
}
_IGNORED_SWITCHES = (
    "enable-debug-mode",
    "enable-stealing-traffic-debug-mode",
    "enable-debug-pod-receive-production-traffic",
    *(
        f"proxy-sidecar-resources-{side}-{name}"
        for side in ("limits", "requests")
        for name in ("cpu", "memory")
    ),
)
_STRATEGY = "deployment-strategy"
_SWITCHES = frozenset((_STRATEGY, *_POD_SWITCHES, *_CONTAINER_SWITCHES, *_IGNORED_SWITCHES))

_RESTRICTED: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsGroup": 1000,
    "runAsNonRoot": True,
    "runAsUser": 1034,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of restricted containers, with user and group of that generation's images."""

_BASE = {"cpu": ("300m", "500m"), "memory": ("500Mi", "1Gi")}
"""Default requests and limits of a component. Source: the recorded operator."""
_SHARED_MEMORY = "64Mi"
"""The size of /dev/shm of a component without memory limit; else it is half of the limit."""
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def as_component(
    nim: DynamoNimDeployment, image: DynamoNimSpec, settings: RenderSettings, legacy: LegacySettings
) -> api.DynamoComponentDeployment:
    """Translate to the component that runs the service from that image."""
    spec = nim.spec
    service = spec.service_name or nim.metadata.name
    mount_point = spec.pvc.mount_point if spec.pvc else None
    component = api.DynamoComponentDeploymentSpec(
        annotations=_annotations(spec.annotations),
        labels=spec.labels,
        service_name=spec.service_name,
        dynamo_namespace=spec.dynamo_namespace,
        resources=spec.resources,
        envs=_environment(spec, service),
        env_from_secret=spec.env_from_secret,
        volume_mounts=(api.VolumeMount(claim_name(nim), mount_point),) if mount_point else (),
        ingress=_ingress(nim, settings, legacy),
        extra_pod_metadata=spec.extra_pod_metadata,
        extra_pod_spec=_pod(spec, image, legacy),
        liveness_probe=spec.liveness_probe,
        readiness_probe=spec.readiness_probe,
        replicas=spec.replicas,
    )
    component = configured(component, config_of(spec.envs), service)
    resources = _with_base(component.resources)
    limit = amount(resources.limits.memory or "") if resources.limits else None
    shared_memory = api.SharedMemory(size=_binary(limit / 2) if limit else _SHARED_MEMORY)
    component = msgspec.structs.replace(component, resources=resources, shared_memory=shared_memory)
    old = nim.metadata
    metadata = Metadata(
        old.name, old.namespace, old.uid, generation=old.generation, annotations=old.annotations
    )
    return api.DynamoComponentDeployment(metadata, component)


def http_port(environment: tuple[Object, ...]) -> int | None:
    """The port of the container: `PORT` if it is set, else 3000; None if `PORT` is invalid."""
    texts = [entry.get("value", "") for entry in environment if entry.get("name") == "PORT"]
    if not texts or not texts[0]:
        return HTTP_PORT
    is_number = texts[0].isascii() and texts[0].isdecimal() and len(texts[0]) <= _DIGITS
    return int(texts[0]) if is_number and 0 < int(texts[0]) < 2**16 else None


def claim_name(nim: DynamoNimDeployment) -> str:
    """The name of the PVC of a component that has one."""
    return (nim.spec.pvc.name if nim.spec.pvc else "") or nim.metadata.name


def command(spec: DynamoNimDeploymentSpec) -> str:
    """The shell command that starts the service; "" leaves that to the image."""
    if not spec.dynamo_tag:
        return ""
    words = ["cd src && uv run dynamo serve"]
    if spec.service_name:
        words += ["--service-name", spec.service_name, spec.dynamo_tag]
        if spec.dynamo_namespace:
            words.append(f"--{spec.service_name}.ServiceArgs.dynamo.namespace={spec.dynamo_namespace}")
    values = (entry.get("value", "") for entry in spec.envs if entry.get("name") == _CONFIG_PATH)
    if (path := next(values, None)) is not None:
        words += ["-f", path]
    return " ".join(words)


def first_of_each_name(entries: Iterable[Object]) -> list[Object]:
    """The first entry of each name, in their order."""
    first: dict[str | None, Object] = {}
    for entry in entries:
        first.setdefault(entry.get("name"), entry)
    return list(first.values())


def switch(annotations: Mapping[str, str], name: str) -> str:
    """The value of an annotation under either prefix; "" if it is not set."""
    keys = (f"{prefix}{name}" for prefix in _PREFIXES)
    return next((annotations[key] for key in keys if key in annotations), "")


def ignored_switches(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The annotations of removed features: proxies, and containers and pods for debugging."""
    return tuple(
        key
        for key in sorted(annotations)
        if key.startswith(_PREFIXES) and key.partition("/")[2] in _IGNORED_SWITCHES
    )


def _annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    kept = {
        key: text
        for key, text in annotations.items()
        if not (key.startswith(_PREFIXES) and key.partition("/")[2] in _SWITCHES)
    }
    return kept | _STRATEGIES.get(switch(annotations, _STRATEGY), {})


def _pod(spec: DynamoNimDeploymentSpec, image: DynamoNimSpec, legacy: LegacySettings) -> Object:
    main: Object = {"image": image.image, "tty": True, "stdin": True}
    if line := command(spec):
        main |= {"command": ["sh", "-c"], "args": [line]}
    port = http_port(spec.envs) or HTTP_PORT
    main["ports"] = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    security = dict(_RESTRICTED) if legacy.restricted_security_context else {}
    for name, context in _CONTAINER_SWITCHES.items():
        if switch(spec.annotations, name) == "true":
            security |= context
    if security:
        main["securityContext"] = security
    users = dict(spec.extra_pod_spec or {})
    pod: Object = {
        field: True for name, field in _POD_SWITCHES.items() if switch(spec.annotations, name) == "true"
    }
    pulls = [*image.image_pull_secrets, *(users.pop("imagePullSecrets", None) or ())]
    if pulls:
        pod["imagePullSecrets"] = list({secret.get("name"): secret for secret in pulls}.values())
    main = merged(main, users.pop("mainContainer", None) or {})
    return {**pod, **users, "mainContainer": main}


def _environment(spec: DynamoNimDeploymentSpec, service: str) -> tuple[Object, ...]:
    """The first variable of each name; the Dynamo namespace is added to the configuration variable."""
    kept = first_of_each_name(spec.envs)
    config = config_of(kept)
    if not config or not spec.dynamo_namespace or not spec.service_name:
        return tuple(kept)
    config = _with_namespace(config, service, spec.dynamo_namespace)
    text = json.dumps(config, separators=(",", ":"))
    return tuple({**entry, "value": text} if entry.get("name") == VARIABLE else entry for entry in kept)


def _with_namespace(config: Object, service: str, namespace: str) -> Object:
    """Processes with this variable ignore the argument with the Dynamo namespace."""
    section: Object = config
    for key in (service, "ServiceArgs", "dynamo"):
        inner = section.get(key, {})
        if not isinstance(inner, dict):
            return config
        section = inner
    if "namespace" in section:
        return config
    return dict(merged(config, {service: {"ServiceArgs": {"dynamo": {"namespace": namespace}}}}))


def _ingress(
    nim: DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings
) -> api.IngressSpec | None:
    ingress = nim.spec.ingress
    if ingress is None or not ingress.enabled:
        return None
    gateway = settings.virtual_service_gateway
    secret = settings.ingress_tls_secret_name
    names_class = bool(ingress.ingress_controller_class_name)
    return msgspec.structs.replace(
        ingress,
        host=ingress.host or nim.metadata.name,
        host_suffix=ingress.host_suffix or host_suffix(legacy, settings),
        ingress_controller_class_name=ingress.ingress_controller_class_name or settings.ingress_class_name,
        use_virtual_service=ingress.use_virtual_service or bool(gateway and not names_class),
        virtual_service_gateway=ingress.virtual_service_gateway or gateway,
        tls=ingress.tls or (api.IngressTls(secret) if secret else None),
    )


def _with_base(resources: api.Resources | None) -> api.Resources:
    """The user's resources, completed by the defaults.

    A default limit below the user's request, or the reverse, is left out: the API server would refuse the
    pod. GPUs are limits only; requests for them are ignored, as in that generation.
    """
    given = resources or api.Resources()
    requests, limits = given.requests or api.ResourceItem(), given.limits or api.ResourceItem()
    lower, upper = _given(requests), _given(limits)
    for name, (least, most) in _BASE.items():
        if name not in upper and not _exceeds(lower.get(name), most):
            upper[name] = most
        if name not in lower and not _exceeds(least, upper.get(name)):
            lower[name] = least
    return api.Resources(
        api.ResourceItem(**lower, custom=requests.custom),
        api.ResourceItem(**upper, gpu=limits.gpu, gpu_type=limits.gpu_type, custom=limits.custom),
        given.claims,
    )


def _given(item: api.ResourceItem) -> dict[str, str]:
    both = {"cpu": item.cpu, "memory": item.memory}
    return {name: value for name, value in both.items() if value}


def _exceeds(quantity: str | None, bound: str | None) -> bool:
    """Whether a quantity exceeds another; False if one is invalid, which validation reports."""
    left, right = amount(quantity or ""), amount(bound or "")
    return left is not None and right is not None and left > right


def _binary(number: Decimal) -> str:
    count = int(number)
    unit = 0
    while count and count % 1024 == 0 and unit < len(_UNITS) - 1:
        count, unit = count // 1024, unit + 1
    return f"{count}{_UNITS[unit]}"
