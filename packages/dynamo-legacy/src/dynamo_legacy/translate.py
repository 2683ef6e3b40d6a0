"""A DynamoNimDeployment as a component of today: the one translation, for rendering and conversion.

Everything that a user said is in the component, under today's names; nothing here fails. What a
component cannot say (ports of the Service, labels, names of variables) is in `dynamo_legacy.render`.
"""

import json
from collections.abc import Mapping

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    IngressSpec,
    IngressTls,
    SharedMemory,
    VolumeMount,
)
from dynamo_graphs.api.deployment_config import VARIABLE, config_of, sized
from dynamo_graphs.render.merge import merged
from dynamo_graphs.settings import RenderSettings
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment, DynamoNimDeploymentSpec
from dynamo_legacy.resources import shared_memory_size, with_base
from dynamo_legacy.settings import LegacySettings, host_suffix
from kube_runtime.kind import Object
from kube_runtime.types.meta import Metadata

HTTP_PORT = 3000
_CONFIG_PATH = "DYNAMO_CONFIG_PATH"
_PREFIXES = ("yatai.ai/", "nvidia.com/")
"""Of the annotations that switch features: a later revision moved them, unchanged."""
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
"""User and group are those of the images of that generation."""


def as_component(
    nim: DynamoNimDeployment, image: DynamoNimSpec, settings: RenderSettings, legacy: LegacySettings
) -> DynamoComponentDeployment:
    """The component that runs a service from that image."""
    spec = nim.spec
    service = spec.service_name or nim.metadata.name
    component = DynamoComponentDeploymentSpec(
        annotations=_annotations(spec.annotations),
        labels=spec.labels,
        service_name=spec.service_name,
        dynamo_namespace=spec.dynamo_namespace,
        resources=spec.resources,
        envs=_environment(spec, service),
        env_from_secret=spec.env_from_secret,
        volume_mounts=_mounts(nim),
        ingress=_ingress(nim, settings, legacy),
        extra_pod_metadata=spec.extra_pod_metadata,
        extra_pod_spec=_pod(spec, image, legacy),
        liveness_probe=spec.liveness_probe,
        readiness_probe=spec.readiness_probe,
        replicas=spec.replicas,
    )
    component = sized(component, config_of(spec.envs), service)
    resources = with_base(component.resources)
    component = msgspec.structs.replace(
        component,
        resources=resources,
        shared_memory=SharedMemory(size=shared_memory_size(resources)),
    )
    old = nim.metadata
    metadata = Metadata(
        old.name, old.namespace, old.uid, generation=old.generation, annotations=old.annotations
    )
    return DynamoComponentDeployment(metadata, component)


def http_port(environment: tuple[Object, ...]) -> int | None:
    """The port of the container: `PORT` if it is set, else 3000. None means: `PORT` is invalid."""
    texts = [each.get("value", "") for each in environment if each.get("name") == "PORT"]
    if not texts or not texts[0]:
        return HTTP_PORT
    is_port = texts[0].isascii() and texts[0].isdecimal() and 0 < int(texts[0][:6]) < 2**16
    return int(texts[0]) if is_port else None


def claim_name(nim: DynamoNimDeployment) -> str:
    """The PVC of a component that has one."""
    return (nim.spec.pvc.name if nim.spec.pvc else "") or nim.metadata.name


def command(spec: DynamoNimDeploymentSpec) -> str:
    """The line that starts the service; "" leaves that to the image."""
    if not spec.dynamo_tag:
        return ""
    words = ["cd src && uv run dynamo serve"]
    if spec.service_name:
        words += ["--service-name", spec.service_name, spec.dynamo_tag]
        if spec.dynamo_namespace:
            words.append(
                f"--{spec.service_name}.ServiceArgs.dynamo.namespace={spec.dynamo_namespace}"
            )
    paths = (each.get("value", "") for each in _first_ones(spec.envs, _CONFIG_PATH))
    return " ".join([*words, *(f"-f {path}" for path in paths)])


def switch(annotations: Mapping[str, str], name: str) -> str:
    """What an annotation says, under either of its names; "" if it is not there."""
    return next(
        (annotations[f"{each}{name}"] for each in _PREFIXES if f"{each}{name}" in annotations), ""
    )


def ignored_switches(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The annotations that switch what is gone: proxies, and containers and pods for debugging."""
    return tuple(
        key
        for key in sorted(annotations)
        if key.startswith(_PREFIXES) and key.partition("/")[2] in _IGNORED_SWITCHES
    )


def _annotations(said: Mapping[str, str]) -> dict[str, str]:
    """The user's annotations, with the strategy as today's."""
    kept = {
        key: text
        for key, text in said.items()
        if not (key.startswith(_PREFIXES) and key.partition("/")[2] in _SWITCHES)
    }
    return kept | _STRATEGIES.get(switch(said, _STRATEGY), {})


def _pod(spec: DynamoNimDeploymentSpec, image: DynamoNimSpec, legacy: LegacySettings) -> Object:
    """The user's pod with the container that runs the service."""
    main: Object = {"image": image.image, "tty": True, "stdin": True}
    if line := command(spec):
        main |= {"command": ["sh", "-c"], "args": [line]}
    port = http_port(spec.envs) or HTTP_PORT
    main["ports"] = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    security = dict(_RESTRICTED) if legacy.restricted_security_context else {}
    for name, wanted in _CONTAINER_SWITCHES.items():
        if switch(spec.annotations, name) == "true":
            security |= wanted
    if security:
        main["securityContext"] = security
    users = dict(spec.extra_pod_spec or {})
    pod: Object = {
        field: True
        for name, field in _POD_SWITCHES.items()
        if switch(spec.annotations, name) == "true"
    }
    pulls = [*image.image_pull_secrets, *(users.pop("imagePullSecrets", None) or ())]
    if pulls:
        pod["imagePullSecrets"] = list({each.get("name"): each for each in pulls}.values())
    main = merged(main, users.pop("mainContainer", None) or {})
    return {**pod, **users, "mainContainer": main}


def _environment(spec: DynamoNimDeploymentSpec, service: str) -> tuple[Object, ...]:
    """The first entry of each name; the Dynamo namespace also where the process looks for it first."""
    entries = {each.get("name"): each for each in reversed(spec.envs)}
    kept = [entries.pop(each.get("name")) for each in spec.envs if each.get("name") in entries]
    config = config_of(kept)
    if not config or not spec.dynamo_namespace or not spec.service_name:
        return tuple(kept)
    text = json.dumps(
        _with_namespace(config, service, spec.dynamo_namespace), separators=(",", ":")
    )
    return tuple({**each, "value": text} if each.get("name") == VARIABLE else each for each in kept)


def _with_namespace(config: Object, service: str, namespace: str) -> Object:
    """The configuration with the Dynamo namespace of a service, unless it names one.

    A process with this variable ignores the argument that says it.
    """
    found: Object = config
    for key in (service, "ServiceArgs", "dynamo"):
        inner = found.get(key, {})
        if not isinstance(inner, dict):
            return config
        found = inner
    if "namespace" in found:
        return config
    return dict(merged(config, {service: {"ServiceArgs": {"dynamo": {"namespace": namespace}}}}))


def _mounts(nim: DynamoNimDeployment) -> tuple[VolumeMount, ...]:
    wanted = nim.spec.pvc
    if wanted is None or not wanted.mount_point:
        return ()
    return (VolumeMount(claim_name(nim), wanted.mount_point),)


def _ingress(
    nim: DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings
) -> IngressSpec | None:
    """The way in, with what the operator's settings say where the user says nothing."""
    wanted = nim.spec.ingress
    if wanted is None or not wanted.enabled:
        return None
    gateway = settings.virtual_service_gateway
    secret = settings.ingress_tls_secret_name
    names_class = bool(wanted.ingress_controller_class_name)
    return msgspec.structs.replace(
        wanted,
        host=wanted.host or nim.metadata.name,
        host_suffix=wanted.host_suffix or host_suffix(legacy, settings),
        ingress_controller_class_name=wanted.ingress_controller_class_name
        or settings.ingress_class_name,
        use_virtual_service=wanted.use_virtual_service or bool(gateway and not names_class),
        virtual_service_gateway=wanted.virtual_service_gateway or gateway,
        tls=wanted.tls or (IngressTls(secret) if secret else None),
    )


def _first_ones(environment: tuple[Object, ...], name: str) -> list[Object]:
    return [each for each in environment if each.get("name") == name][:1]
