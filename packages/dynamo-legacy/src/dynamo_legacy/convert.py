"""Convert objects of the older generation to today's, with a remark for every difference.

Components go through the same translation as rendering. The remarks have paths in the old object.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from dynamo_legacy import render
from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimSpec, Pvc
from dynamo_legacy.names import component_name, object_of
from dynamo_legacy.render import GraphConfig, components, unknown_services
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import HTTP_PORT, as_component, claim_name, command, http_port, ignored_switches
from dynamo_operator import labels
from dynamo_operator.component import pod as roles
from dynamo_operator.component.api import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    ScalingAdapterSwitch,
)
from dynamo_operator.component.objects import merged, pruned, variable
from dynamo_operator.component.service import VARIABLE, config_of
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import PersistentVolumeClaim
from kube_runtime.types.meta import Kind, Metadata, Object, from_plain

TAG = "nvidia.com/legacy-nim-tag"
"""Annotation of a converted object: the tag, or the name of the DynamoNim, that it ran."""
_OLD_KEYS = ("yatai.ai/", "kubectl.kubernetes.io/", "nvidia.com/last-applied-hash")
_PROBES: dict[str, Object] = {
    "livenessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 10, "failureThreshold": 60},
    "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 5},
}
"""The probes of an exposed service that has none: images of that generation do not serve the paths of
today's default probes."""
_UNREAD = ("runMode", "externalServices")
"""Fields that no process ever read."""


class Level(StrEnum):
    """The severity of a remark: lost, guessed, or worth knowing."""

    DROPPED = "dropped"
    GUESSED = "guessed"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Remark:
    """A difference between the old object and the new ones. `path` is in the old object."""

    level: Level
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class ConversionContext:
    """The inputs of a conversion beside the object: both settings, and a suffix for names."""

    settings: RenderSettings = field(default_factory=RenderSettings)
    legacy: LegacySettings = field(default_factory=LegacySettings)
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """New objects in the order in which to apply them, and the remarks."""

    objects: tuple[Object, ...]
    remarks: tuple[Remark, ...]


def converted_deployment(
    deployment: DynamoDeployment, graph: GraphConfig, image: DynamoNimSpec, at: ConversionContext
) -> Conversion:
    """Convert a DynamoDeployment to a graph, with autoscalers, and PVCs that a graph cannot create.

    Raises:
        ValueError: the graph cannot be generated, or an override has a wrong type; the message says which.
    """
    name = f"{deployment.metadata.name}{at.suffix}"
    remarks = [
        Remark(Level.DROPPED, f"spec.services.{service}", "the graph has no such service")
        for service in unknown_services(deployment, graph)
    ]
    services: dict[str, Object] = {}
    claims: dict[str, Object] = {}
    beside: list[Object] = []
    for document, entry in zip(components(deployment, graph), graph.services, strict=True):
        path = f"spec.services.{entry.name}"
        try:
            nim = from_plain(document, DynamoNimDeployment)
        except msgspec.ValidationError as error:
            raise ValueError(f"{path}: {error}") from error
        spec, component_remarks = _component(nim, image, at)
        losses = _losses(deployment.spec.services.get(entry.name) or {})
        remarks += _at(path, (*component_remarks, *losses))
        if "envs" in spec:  # without those that the graph sets to the same value
            spec["envs"] = [variable for variable in spec["envs"] if variable not in deployment.spec.envs]
        services[entry.name] = spec
        if nim.spec.pvc and nim.spec.pvc.mount_point:
            claim, objects = _claim(nim, nim.spec.pvc)
            claims.setdefault(claim["name"], claim)
            beside += (pvc for pvc in objects if pvc not in beside)
            remarks += _at(path, _claim_remarks(nim))
        adapter = component_name(name, entry.name)
        beside += _autoscaler(nim, DynamoGraphDeploymentScalingAdapter.KIND, adapter)
    metadata = _metadata(deployment.metadata, name, deployment.spec.dynamo_nim)
    metadata["annotations"] |= {labels.DISCOVERY_BACKEND: "etcd"}
    body: Object = {"envs": list(deployment.spec.envs), "pvcs": list(claims.values()), "services": services}
    given = {key: value for key, value in body.items() if value}
    converted = object_of(DynamoGraphDeployment, metadata, spec=given)
    return Conversion(_sorted(beside, converted), tuple(remarks))


def converted_component(
    nim: DynamoNimDeployment, user_spec: Object, image: DynamoNimSpec, at: ConversionContext
) -> Conversion:
    """Convert a DynamoNimDeployment without a DynamoDeployment. `user_spec` is its spec as JSON."""
    name = f"{nim.metadata.name}{at.suffix}"
    spec, component_remarks = _component(nim, image, at)
    spec.pop("scalingAdapter", None)  # of graphs only
    if nim.spec.service_name:
        spec["serviceName"] = nim.spec.service_name
    spec["annotations"] = {**spec.get("annotations", {}), labels.DISCOVERY_BACKEND: "etcd"}
    remarks = [*_at("spec", (*component_remarks, *_losses(user_spec)))]
    beside: list[Object] = []
    if nim.spec.pvc and nim.spec.pvc.mount_point:
        beside += render.claims(nim)
        remarks += _at("spec", _claim_remarks(nim))
    beside += _autoscaler(nim, DynamoComponentDeployment.KIND, name)
    metadata = _metadata(nim.metadata, name, nim.spec.dynamo_nim)
    converted = object_of(DynamoComponentDeployment, metadata, spec=spec)
    return Conversion(_sorted(beside, converted), tuple(remarks))


def _component(
    nim: DynamoNimDeployment, image: DynamoNimSpec, at: ConversionContext
) -> tuple[Object, list[Remark]]:
    spec = as_component(nim, image, at.settings, at.legacy).spec
    remarks: list[Remark] = []
    if not command(nim.spec):
        text = "the image's own command is replaced by a default (set extraPodSpec.mainContainer.command)"
        remarks.append(Remark(Level.DROPPED, "extraPodSpec.mainContainer.command", text))
    if not any(entry.get("name") == "PORT" for entry in spec.envs):
        port = variable("PORT", str(http_port(spec.envs) or HTTP_PORT))
        spec = msgspec.structs.replace(spec, envs=(*spec.envs, port))
    if nim.spec.autoscaling and nim.spec.autoscaling.enabled:
        spec = msgspec.structs.replace(
            spec,
            scaling_adapter=ScalingAdapterSwitch(enabled=True),
            replicas=nim.spec.autoscaling.min_replicas or 1,
        )
    body: Object = pruned(msgspec.to_builtins(spec))
    body.pop("serviceName", None)
    if spec.ingress is None:
        text = f"the Service loses port {HTTP_PORT}; only a component with an ingress keeps one"
        remarks.append(Remark(Level.NOTE, "ingress", text))
        return body, remarks
    return _exposed(nim, spec, body), [*remarks, *_exposed_remarks(nim, body)]


def _exposed(nim: DynamoNimDeployment, spec: DynamoComponentDeploymentSpec, body: Object) -> Object:
    """An exposed service as a frontend, the only type with a port for requests."""
    body = {"componentType": "frontend", **_PROBES, **body}
    body["ingress"] = {key: value for key, value in body["ingress"].items() if value != ""}
    if _moves_port(nim):
        pod: Object = spec.extra_pod_spec or {}
        ports = [
            {**port, "containerPort": roles.HTTP_PORT} if port.get("name") == "http" else port
            for port in pod["mainContainer"]["ports"]
        ]
        body["extraPodSpec"] = merged(body["extraPodSpec"], {"mainContainer": {"ports": ports}})
    return body


def _moves_port(nim: DynamoNimDeployment) -> bool:
    """Whether today's operator writes its port into the service's entry of the variable."""
    return isinstance(config_of(nim.spec.envs).get(nim.spec.service_name or ""), dict)


def _exposed_remarks(nim: DynamoNimDeployment, body: Object) -> Iterator[Remark]:
    text = f"the Service's port {HTTP_PORT} becomes {roles.HTTP_PORT}"
    yield Remark(Level.NOTE, "ingress", text)
    ingress = body["ingress"]
    if not (ingress.get("ingressControllerClassName") or ingress.get("virtualServiceGateway")):
        text = "no ingress class and no gateway is known: nothing outside the cluster reaches it"
        yield Remark(Level.GUESSED, "ingress.ingressControllerClassName", text)
    if nim.spec.ingress and not nim.spec.ingress.host_suffix:
        suffix = ingress["hostSuffix"]
        yield Remark(Level.GUESSED, "ingress.hostSuffix", f"{suffix}, from the settings")
    for name, own in (
        ("livenessProbe", nim.spec.liveness_probe),
        ("readinessProbe", nim.spec.readiness_probe),
    ):
        if own is None:
            yield Remark(Level.GUESSED, name, "connects to the port; there was no probe")
    if _moves_port(nim):
        text = f"the port that {VARIABLE} gives the service becomes {roles.HTTP_PORT}"
        yield Remark(Level.GUESSED, "envs", text)


def _losses(user_spec: Object) -> Iterator[Remark]:
    for name in _UNREAD:
        if user_spec.get(name):
            yield Remark(Level.NOTE, name, "left out: no process has ever read it")
    if user_spec.get("monitorExporter"):
        yield Remark(Level.DROPPED, "monitorExporter", "the image of this side container is gone")
    for key in ignored_switches(user_spec.get("annotations") or {}):
        yield Remark(Level.DROPPED, f"annotations[{key}]", "has no counterpart")
    requests = (user_spec.get("resources") or {}).get("requests") or {}
    if requests.get("gpu"):
        yield Remark(Level.NOTE, "resources.requests.gpu", "GPUs are limits only")


def _at(path: str, remarks: Sequence[Remark] | Iterator[Remark]) -> Iterator[Remark]:
    for remark in remarks:
        yield Remark(remark.level, f"{path}.{remark.path}", remark.message)


def _claim(nim: DynamoNimDeployment, pvc: Pvc) -> tuple[Object, tuple[Object, ...]]:
    entry: Object = {"name": claim_name(nim)}
    if not pvc.create:
        return entry, ()
    if not pvc.storage_class:
        return entry, render.claims(nim)
    sizes = {"size": pvc.size, "storageClass": pvc.storage_class}
    access = {"volumeAccessMode": pvc.volume_access_mode}
    return {**entry, "create": True, **sizes, **access}, ()


def _claim_remarks(nim: DynamoNimDeployment) -> Iterator[Remark]:
    if nim.spec.pvc and nim.spec.pvc.create:
        text = f"{claim_name(nim)} is deleted with the old object, unless you take its owner away first"
        yield Remark(Level.NOTE, "pvc", text)


def _autoscaler(nim: DynamoNimDeployment, kind: Kind, name: str) -> tuple[Object, ...]:
    namespace = {"namespace": nim.metadata.namespace} if nim.metadata.namespace else {}
    return render.autoscaler_of(nim.spec.autoscaling, kind, {"name": name, **namespace})


def _metadata(old: Metadata, name: str, tag: str) -> Object:
    kept = {key: text for key, text in old.annotations.items() if not key.startswith(_OLD_KEYS)}
    metadata: Object = {
        "name": name,
        "namespace": old.namespace,
        "labels": {key: text for key, text in old.labels.items() if not key.startswith(_OLD_KEYS)},
        "annotations": {**kept, TAG: tag},
    }
    return {key: value for key, value in metadata.items() if value}


def _sorted(beside: Sequence[Object], converted: Object) -> tuple[Object, ...]:
    """Order for applying: PVCs first, since pods wait for them; autoscalers after their targets."""
    pvcs = [manifest for manifest in beside if manifest["kind"] == PersistentVolumeClaim.KIND.name]
    return (*pvcs, converted, *(manifest for manifest in beside if manifest not in pvcs))
