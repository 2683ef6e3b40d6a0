"""Settings that are allowed and probably not intended: warnings for the client that applies them.

They are about what the user wrote, never about a default of the operator: users stop reading a warning that
comes with every apply.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dynamo_operator import names
from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
    ResourceItem,
    Resources,
    has_adapter,
    ingress_host,
    is_under_factor,
)
from dynamo_operator.component.framework import gpus
from dynamo_operator.component.service import base_replicas
from dynamo_operator.component.validate import EPP, framework_warnings, update_warnings
from dynamo_operator.component.validate_pod import image_warnings, version_warnings
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.validate import graph_inoperative, inoperative
from dynamo_operator.shared.cluster import InferencePool
from dynamo_operator.shared.problems import Problem, ProblemKind, component_path, nearest, service_path
from kube_runtime.types.meta import Fields

_NOT_INSTALLED = (
    f"InferencePool API group ({InferencePool.KIND.group}) is not available in the cluster. EPP requires "
    "the Gateway API Inference Extension to be installed. Please install the Gateway API "
    "Inference Extension before deploying EPP components"
)


# It comes from the caches, without a request. A kind that is not watched is None, which is not the
# same as empty: nothing is reported about it.
@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What is known of the cluster and of the namespace of an object. None means: not known.

    Of the cluster: `pools_served` is whether it serves InferencePools; `pools_withheld`, if not empty, the
    text that the operator may not read them. `grove_served` decides the workload provider of a graph that has
    none recorded. `foreign_graphs` are the Dynamo namespaces, and `foreign_hosts` the hosts of Ingresses, of
    all other namespaces.

    Of the namespace: `claims` are the names of its PVCs, `base_models` those of its DynamoModels.
    `written_claims` has the access modes of some PVCs, `config_maps` the keys of some ConfigMaps.
    """

    pools_served: bool | None = None
    pools_withheld: str = ""
    grove_served: bool = False
    claims: Container[str] | None = None
    base_models: Container[str] | None = None
    foreign_graphs: Container[str] | None = None
    foreign_hosts: Container[str] | None = None
    written_claims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    config_maps: Mapping[str, Container[str]] = field(default_factory=dict)


UNKNOWN = ClusterContext()


def context_problems(graph: DynamoGraphDeployment, context: ClusterContext) -> Iterator[Problem]:
    """Report endpoint pickers in a cluster without InferencePools."""
    if context.pools_served is not False:
        return
    why = context.pools_withheld or _NOT_INSTALLED
    for key, service in sorted(graph.spec.services.items()):
        if service.component_type == EPP:
            message = f"spec.services[{key}]: cannot deploy EPP component: {why}"
            yield Problem(f"{service_path(key)}.componentType", message, ProblemKind.NOT_SUPPORTED)


_LEAST_LIVENESS_SECONDS = 15
_ONE_NODE = ("ReadWriteOnce", "ReadWriteOncePod")
_TYPES = ("frontend", "worker", "prefill", "decode", "planner", "epp")
"""The values of `componentType` that have defaults."""

_DISCOVERING_ACCOUNT = "the ServiceAccount whose permissions processes need to discover each other"
_OVERRIDDEN = {
    "restartPolicy": "Always",
    "serviceAccountName": _DISCOVERING_ACCOUNT,
    "serviceAccount": _DISCOVERING_ACCOUNT,
}


def graph_warnings(graph: DynamoGraphDeployment, context: ClusterContext = UNKNOWN) -> Iterator[Problem]:
    """Warnings for a graph without problems."""
    dynamo_namespace = names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name)
    for key, service in sorted(graph.spec.services.items()):
        path = service_path(key)
        yield from _deprecation_warnings(service, path)
        yield from _namespace_warnings(service, dynamo_namespace, path)
        yield from _spec_warnings(service, path, context)
    yield from graph_inoperative(graph)
    yield from _claim_warnings(graph, context)
    yield from _shared_name_warnings(graph, context)


def new_graph_warnings(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings for a graph that is created: of what Go operators of Dynamo 1.x refuse then."""
    if graph.spec.restart is not None:
        message = "has no effect on a new graph, whose pods are all new; v1beta1 does not allow it"
        yield Problem("spec.restart", message)
    for key, service in sorted(graph.spec.services.items()):
        yield from version_warnings(service, service_path(key))


def graph_change_warnings(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings for an update of a graph without problems."""
    yield from framework_warnings(old, new)
    factor = 1 if new.spec.replicas is None else new.spec.replicas
    for key, service in sorted(new.spec.services.items()):
        before = old.spec.services.get(key)
        if factor == 1 or before is None or not has_adapter(before) or not is_under_factor(service):
            continue
        if (number := base_replicas(new, key)) * factor != base_replicas(old, key):
            text = f"without the adapter, spec.replicas multiplies the {number} replicas by {factor}"
            yield Problem(f"{service_path(key)}.scalingAdapter", text)
    created = {claim.name: claim for claim in old.spec.pvcs if claim.create}
    for index, claim in enumerate(new.spec.pvcs):
        if claim.create and (former := created.get(claim.name)):
            changes = {
                "size": former.size != claim.size,
                "storageClass": former.storage_class != claim.storage_class,
                "volumeAccessMode": former.volume_access_mode != claim.volume_access_mode,
            }
            for name in (name for name, is_changed in changes.items() if is_changed):
                text = f'PVC "{claim.name}" keeps what it was created with: the operator changes no PVC'
                yield Problem(f"spec.pvcs[{index}].{name}", text)


def component_warnings(
    component: DynamoComponentDeployment, context: ClusterContext = UNKNOWN
) -> Iterator[Problem]:
    """Warnings for a component without problems. One that belongs to a graph gets none of its own."""
    owner = component.metadata.controller
    if owner is not None and owner.kind == DynamoGraphDeployment.KIND.name:
        return
    yield from _deprecation_warnings(component.spec, "spec")
    yield from _spec_warnings(component.spec, "spec", context)
    yield from inoperative(component.spec, "spec")
    if component.spec.topology_constraint is not None:
        yield Problem("spec.topologyConstraint", "has an effect in graphs on Grove only")
    for index, mount in enumerate(component.spec.volume_mounts):
        yield from _unknown_claim(mount.name, f"spec.volumeMounts[{index}].name", context)


def _deprecation_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    if spec.autoscaling is not None:
        message = (
            f"{component_path(path)}.autoscaling is deprecated and ignored. Use "
            "DynamoGraphDeploymentScalingAdapter with HPA, KEDA, or Planner for autoscaling "
            "instead. See docs/scaling.md"
        )
        yield Problem(f"{path}.autoscaling", message)


def _namespace_warnings(spec: ComponentSpec, of_graph: str, path: str) -> Iterator[Problem]:
    used = "dynamo" if spec.global_dynamo_namespace else of_graph
    if spec.dynamo_namespace and spec.dynamo_namespace != used:
        message = (
            f"{component_path(path)}.dynamoNamespace is deprecated and ignored. Value "
            f"'{spec.dynamo_namespace}' will be replaced with '{used}'. Remove this field from your "
            "configuration"
        )
        yield Problem(f"{path}.dynamoNamespace", message)


def _spec_warnings(spec: ComponentSpec, path: str, context: ClusterContext) -> Iterator[Problem]:
    pod: Fields = spec.extra_pod_spec or {}
    kind = spec.component_type
    if kind and kind not in _TYPES and (hint := nearest(kind, _TYPES)):
        effect = "it gets no default ports, probes or environment"
        text = f'unknown componentType "{kind}" ({hint.removeprefix("; ")}); {effect}'
        yield Problem(f"{path}.componentType", text)
    short = spec.resources or Resources()
    limits, requests = short.limits or ResourceItem(), short.requests or ResourceItem()
    if requests.gpu and not limits.gpu:
        text = "GPUs cannot be overcommitted: the limit is set to the request"
        yield Problem(f"{path}.resources.requests.gpu", text)
    yield from image_warnings(spec, path)
    if gpus(spec):
        main: Fields = pod.get("mainContainer") or {}
        yield from _probe_warnings(spec.liveness_probe, f"{path}.livenessProbe")
        at = f"{path}.extraPodSpec.mainContainer.livenessProbe"
        yield from _probe_warnings(main.get("livenessProbe"), at)
    for name, default in _OVERRIDDEN.items():
        if pod.get(name):
            yield Problem(f"{path}.extraPodSpec.{name}", f"overrides the operator's default, {default}")
    yield from update_warnings(spec, path)
    yield from _unknown_key(spec, path, context)
    models = context.base_models
    if spec.model_ref and models is not None and spec.model_ref.name not in models:
        message = f'no DynamoModel in this namespace has the baseModelName "{spec.model_ref.name}" yet'
        yield Problem(f"{path}.modelRef.name", message)


def _probe_warnings(probe: object, path: str) -> Iterator[Problem]:
    if not isinstance(probe, Mapping):
        return
    # A probe with a timeout longer than its period runs once per timeout.
    check_seconds = max(probe.get("periodSeconds") or 10, probe.get("timeoutSeconds") or 1)
    seconds = check_seconds * (probe.get("failureThreshold") or 3)
    if seconds < _LEAST_LIVENESS_SECONDS:
        message = (
            f"restarts the container after {seconds} s without a response, but a busy model may "
            f"take that long (expected at least {_LEAST_LIVENESS_SECONDS} s)"
        )
        yield Problem(path, message)


# The warnings do not name the other namespace: one tenant must not learn of another.
def _shared_name_warnings(graph: DynamoGraphDeployment, context: ClusterContext) -> Iterator[Problem]:
    dynamo_namespace = names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name)
    if dynamo_namespace in (context.foreign_graphs or ()):
        message = (
            f'a graph in another namespace uses the same Dynamo namespace "{dynamo_namespace}": processes '
            "that discover each other through etcd or NATS would mix; choose another name"
        )
        yield Problem("metadata.name", message)
    for key, service in sorted(graph.spec.services.items()):
        ingress = service.ingress
        if ingress is None or not ingress.enabled or not ingress.host:
            continue
        if (host := ingress_host(ingress)) in (context.foreign_hosts or ()):
            message = f'an Ingress in another namespace uses the same host "{host}"'
            yield Problem(f"{service_path(key)}.ingress.host", f"{message}: only one of them is served")


def _claim_warnings(graph: DynamoGraphDeployment, context: ClusterContext) -> Iterator[Problem]:
    own = {claim.name: claim for claim in graph.spec.pvcs}
    for index, claim in enumerate(graph.spec.pvcs):
        if not claim.create:
            yield from _unknown_claim(claim.name, f"spec.pvcs[{index}].name", context)
    for key, service in sorted(graph.spec.services.items()):
        pods = base_replicas(graph, key) * service.nodes
        for index, mount in enumerate(service.volume_mounts):
            path = f"{service_path(key)}.volumeMounts[{index}].name"
            declared = own.get(mount.name)
            if declared is None:
                yield from _unknown_claim(mount.name, path, context)
                if context.claims is None and mount.name not in context.written_claims:
                    text = "is not created by the graph: pods wait until it exists"
                    yield Problem(path, f'PVC "{mount.name}" {text}')
            modes = context.written_claims.get(mount.name, ())
            if declared is not None and declared.create and declared.volume_access_mode:
                modes = (declared.volume_access_mode,)
            if pods > 1 and modes and all(mode in _ONE_NODE for mode in modes):
                message = (
                    f'PVC "{mount.name}" is {modes[0]}, but {pods} pods mount it: those on a '
                    "second node do not start"
                )
                yield Problem(path, message)


def _unknown_key(spec: ComponentSpec, path: str, context: ClusterContext) -> Iterator[Problem]:
    reference = (spec.epp_config.config_map_ref if spec.epp_config else None) or {}
    name, key = reference.get("name"), reference.get("key")
    if not isinstance(name, str) or not isinstance(key, str):
        return
    keys = context.config_maps.get(name)
    if keys is not None and key not in keys:
        message = f'key "{key}" not found in ConfigMap "{name}"'
        yield Problem(f"{path}.eppConfig.configMapRef.key", message)


def _unknown_claim(name: str, path: str, context: ClusterContext) -> Iterator[Problem]:
    claims = context.claims
    if name and claims is not None and name not in claims:
        yield Problem(path, f'PersistentVolumeClaim "{name}" not found; pods wait for it')
