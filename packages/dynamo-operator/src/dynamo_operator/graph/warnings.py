"""Settings that are allowed and probably not intended: warnings for the client that applies them.

They are about what the user wrote, never about a default of the operator: users stop reading a warning that
comes with every apply.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from dynamo_operator import names
from dynamo_operator.component.api import (
    WORKER_TYPES,
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    IngressSpec,
    ResourceItem,
    Resources,
    ingress_host,
)
from dynamo_operator.component.framework import (
    LORA_FLAG,
    LORA_VARIABLE,
    Mode,
    as_component,
    framework,
    gpus,
    has_only_flags,
    is_python,
    is_shell,
    mode,
    parallelism,
    several_flags,
    started,
)
from dynamo_operator.component.validate import WITH_COMMAND, update_warnings
from dynamo_operator.component.validate_pod import HANDLERS, image_warnings
from dynamo_operator.features.picker import TYPE
from dynamo_operator.graph.api import DynamoGraphDeployment, PersistentVolumeClaimSpec
from dynamo_operator.graph.replicas import base_replicas
from dynamo_operator.names import is_on_grove
from dynamo_operator.shared.cluster import InferencePool
from dynamo_operator.shared.problems import (
    Problem,
    ProblemKind,
    component_path,
    nearest,
    service_path,
    shown,
)
from kube_runtime.kind import Fields, Object

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
    for key, service in sorted(graph.spec.services.items()):
        if service.component_type == TYPE:
            why = context.pools_withheld or _NOT_INSTALLED
            message = f"spec.services[{key}]: cannot deploy EPP component: {why}"
            path = f"{service_path(key)}.componentType"
            yield Problem(path, message, ProblemKind.NOT_SUPPORTED)


_PORTS: Final = {"frontend": "http"} | dict.fromkeys(WORKER_TYPES, "system")
_NUMBERS: Final = {"http": 8000, "system": 9090}
_PLANNERS: Final = frozenset(("dynamo.global_planner", "dynamo.planner", "planner_sla"))
_FLAGGED: Final = frozenset(("vllm", "sglang"))
"""Frameworks whose multinode launch consists of flags in the user's arguments."""


# The Go operator accepts them, so they are warnings. Each rule reports only what never works,
# because the warning stays in the status for as long as the spec has the cause
# (`graph/status.py`).
def graph_inoperative(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings of a graph and all of its services."""
    for key, service in sorted(graph.spec.services.items()):
        yield from inoperative(as_component(graph, service), service_path(key))
    for index, claim in enumerate(graph.spec.pvcs):
        creating = {
            "storageClass": claim.storage_class,
            "size": claim.size,
            "volumeAccessMode": claim.volume_access_mode,
            "retain": claim.retain,
        }
        for name, value in creating.items():
            if value and not claim.create:
                path = f"spec.pvcs[{index}].{name}"
                yield Problem(path, "has no effect without create: true")
    on_grove = is_on_grove(graph)
    for key, service in sorted(graph.spec.services.items()):
        path = service_path(key)
        if service.service_name and service.service_name != key:
            message = f'has no effect: the name of a service is its key, "{key}"'
            yield Problem(f"{path}.serviceName", message)
        if on_grove and service.disruption_budget:
            message = "has no effect on Grove: budgets are for components that run as a Deployment"
            yield Problem(f"{path}.disruptionBudget", message)
        is_hidden = on_grove and service.component_type != "frontend"
        if is_hidden and service.ingress and service.ingress.enabled:
            message = "has no effect on Grove: only frontends are exposed"
            yield Problem(f"{path}.ingress", message)


def inoperative(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    """Warnings of one component, whose spec is at `path` and has no problems."""
    written: Fields = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    at = f"{path}.extraPodSpec.mainContainer"
    name = framework(spec).name
    main = started(spec.component_type, name, written)
    yield from _command_warnings(spec, main, at)
    if main.get("ports"):
        yield from _port_warnings(spec, main, at)
    text = " ".join(map(str, (*(main.get("command") or ()), *(main.get("args") or ()))))
    programs = {program for option, program in pairwise(text.split()) if option == "-m"}
    has_account = (spec.extra_pod_spec or {}).get("serviceAccountName")
    if spec.component_type != "planner" and not has_account and programs & _PLANNERS:
        message = (
            'only a service with componentType "planner" gets the ServiceAccount that may scale '
            "graphs (set componentType, or serviceAccountName)"
        )
        yield Problem(f"{at}.args", message)
    entries = (*(main.get("env") or ()), *spec.envs)
    variables = {str(entry.get("name")): entry.get("value") for entry in entries}
    loads_loras = str(variables.get(LORA_VARIABLE)).lower() == "true"
    is_known = "--config" not in text and "$" not in text
    if name == "vllm" and loads_loras and is_known and LORA_FLAG not in text.replace("_", "-"):
        message = f"{LORA_VARIABLE} is true, but vLLM has no API for LoRAs without {LORA_FLAG}"
        yield Problem(f"{at}.args", f"{message} (add it to args)")
    if spec.nodes > 1:
        yield from _multinode_warnings(spec, name, main, path)
    if spec.ingress and spec.ingress.enabled:
        yield from _ingress_warnings(spec.ingress, f"{path}.ingress")
    yield from _ineffective(spec, path)


def _command_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of a command that exits at once."""
    command, args = list(main.get("command") or ()), list(main.get("args") or ())
    has_own = spec.component_type in WITH_COMMAND
    runs_shell = is_shell(command) or not (command or has_own)
    shell = " ".join(command) or "/bin/sh -c"
    if runs_shell and not args:
        missing = "no arguments" if command else "neither command nor args"
        message = f'{missing}: the container runs "{shell}" without a script and exits at once'
        yield Problem(f"{path}.args", f"{message} (expected a command, or a script in args)")
    elif runs_shell and has_only_flags(args):
        message = f'"{shell}" cannot run the flag {shown(args[0])} as a script: set command'
        is_named = spec.component_type not in WORKER_TYPES or bool(command)
        hint = "" if is_named else ", or backendFramework to start its engine"
        message = f'{message}, for example ["python3", "-m", "dynamo.vllm"]{hint}'
        yield Problem(f"{path}.args", message)
    elif not command and spec.component_type == "frontend" and args and _is_script(args[0]):
        message = f'args replace "-m dynamo.frontend", and python3 finds no file {shown(args[0])}'
        message = f'{message} (expected "-m", "dynamo.frontend" first, or flags)'
        yield Problem(f"{path}.args", message)
    elif len(command) == 1 and is_python(command[0]) and has_only_flags(args):
        message = (
            f'{command[0]} does not accept the flag {shown(args[0])}: put "-m" and the module first'
        )
        yield Problem(f"{path}.args", message)
    elif command and not runs_shell and is_python(command[0]) and spec.nodes == 1:
        for index, arg in enumerate(args):  # which no shell splits
            if several_flags(arg):
                message = (
                    f"{shown(arg)} is one argument: the program receives all of it as one flag "
                    "(expected one argument per word)"
                )
                yield Problem(f"{path}.args[{index}]", message)


def _is_script(text: str) -> bool:
    """Whether Python would take the text for a file name although it cannot be one."""
    return not text.startswith("-") and (" " in text or not ("/" in text or "." in text))


def _port_warnings(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of ports that replace the default ones but lack the one that probes and the Service name."""
    name = _PORTS.get(spec.component_type or "")
    ports = main.get("ports") or ()
    if not name or not ports or any(port.get("name") == name for port in ports):
        return
    if name == "system" and _has_own_probes(spec, main):
        return  # its Service then has no port, but no client uses it
    message = f'missing port "{name}", which the default probes and the Service use'
    entry = f'{{"name": "{name}", "containerPort": {_NUMBERS[name]}}}'
    yield Problem(f"{path}.ports", f"{message} (add {entry})")


def _has_own_probes(spec: DynamoComponentDeploymentSpec, main: Fields) -> bool:
    """Whether the user's probes replace all default probes of a worker."""
    whole = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return all(
        whole.get(probe) is not None
        or any((main.get(probe) or {}).get(handler) is not None for handler in HANDLERS)
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    )


def _multinode_warnings(
    spec: DynamoComponentDeploymentSpec, name: str, main: Fields, path: str
) -> Iterator[Problem]:
    """Warn of multinode launches without effect."""
    command = list(main.get("command") or ())
    at = f"{path}.extraPodSpec.mainContainer"
    if name in _FLAGGED and len(command) > 2 and is_shell(command[:2]):  # noqa: PLR2004  # a script
        message = "the operator appends the flags of a multinode launch to args"
        yield Problem(f"{at}.command", f"{message}: move the script from command to args")
    elif name == "vllm" and mode(gpus(spec), parallelism(main)) is Mode.ALONE:
        message = (
            f"each of the {spec.nodes} nodes runs a separate server: no parallel size exceeds the "
            f"{gpus(spec)} GPUs of a node (expected --tensor-parallel-size, "
            "--pipeline-parallel-size or --data-parallel-size)"
        )
        yield Problem(f"{at}.args", message)


def _ingress_warnings(ingress: IngressSpec, path: str) -> Iterator[Problem]:
    """Warn of an Ingress or VirtualService that is not created, or not for the intended host."""
    if ingress.use_virtual_service and not ingress.virtual_service_gateway:
        # Without gateways a VirtualService would apply to the whole mesh, so none is created.
        message = (
            "no VirtualService is created without a gateway: the operator's default gateway is for frontends "
            'that have no ingress of their own (expected a name, for example "istio-system/public")'
        )
        yield Problem(f"{path}.virtualServiceGateway", message)
    if not (ingress.ingress_controller_class_name or ingress.use_virtual_service):
        message = (
            "no Ingress is created without a class: the operator's default class applies only to "
            "frontends without an ingress of their own"
        )
        yield Problem(f"{path}.ingressControllerClassName", message)
    host = ingress.host or ""
    if "." in host and not ingress.host_suffix:
        first, _, rest = host.partition(".")
        message = (
            f'the host is "{ingress.host_prefix or ""}{host}.local", because "local" is appended '
            f"without hostSuffix (expected, for example, host: {first} and hostSuffix: {rest})"
        )
        yield Problem(f"{path}.host", message)


def _ineffective(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of fields without effect beside others."""
    if spec.model_ref and spec.model_ref.revision:
        yield Problem(f"{path}.modelRef.revision", "has no effect: nothing reads it")
    if spec.epp_config and spec.component_type != "epp":
        yield Problem(f"{path}.eppConfig", "has no effect without componentType: epp")
    if spec.shared_memory and spec.shared_memory.disabled and spec.shared_memory.size is not None:
        yield Problem(f"{path}.sharedMemory.size", "has no effect with disabled: true")
    sides = (spec.resources.requests, spec.resources.limits) if spec.resources else ()
    if any(side and side.gpu_type for side in sides) and not any(
        side and side.gpu for side in sides
    ):
        yield Problem(f"{path}.resources", "gpuType has no effect without gpu")
    ingress = spec.ingress
    if ingress is None or not ingress.enabled:
        return
    at = f"{path}.ingress"
    if ingress.virtual_service_gateway and not ingress.use_virtual_service:
        yield Problem(
            f"{at}.virtualServiceGateway", "has no effect without useVirtualService: true"
        )
    if ingress.tls and ingress.use_virtual_service and not ingress.ingress_controller_class_name:
        message = "has no effect on a VirtualService: the certificate belongs to its gateway"
        yield Problem(f"{at}.tls", message)


def without_switch(document: Object) -> Iterator[Problem]:
    """Warnings of objects that are off because `enabled` was left out, in a document as it was written.

    The API server adds the default, so that later nothing shows whether a user meant it.
    """
    spec = document.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    places = {"spec": spec}
    if isinstance(services, dict):
        places = {service_path(key): service for key, service in services.items()}
    for path, place in places.items():
        adapter, ingress = (
            (place.get(field) if isinstance(place, dict) else None)
            for field in ("scalingAdapter", "ingress")
        )
        if isinstance(adapter, dict) and "enabled" not in adapter:
            yield Problem(f"{path}.scalingAdapter", "has no effect without enabled: true")
        if isinstance(ingress, dict) and ingress and "enabled" not in ingress:
            yield Problem(f"{path}.ingress", "exposes nothing without enabled: true")


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


def graph_warnings(
    graph: DynamoGraphDeployment, context: ClusterContext = UNKNOWN
) -> Iterator[Problem]:
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


def _type_warnings(kind: str | None, path: str) -> Iterator[Problem]:
    """Warn of a component type that looks like a misspelling."""
    if kind and kind not in _TYPES and (hint := nearest(kind, _TYPES)):
        effect = "it gets no default ports, probes or environment"
        yield Problem(path, f'unknown componentType "{kind}" ({hint.removeprefix("; ")}); {effect}')


def _spec_warnings(spec: ComponentSpec, path: str, context: ClusterContext) -> Iterator[Problem]:
    pod: Fields = spec.extra_pod_spec or {}
    yield from _type_warnings(spec.component_type, f"{path}.componentType")
    short = spec.resources or Resources()
    limits, requests = short.limits or ResourceItem(), short.requests or ResourceItem()
    if requests.gpu and not limits.gpu:
        message = "GPUs cannot be overcommitted: the limit is set to the request"
        yield Problem(f"{path}.resources.requests.gpu", message)
    yield from image_warnings(spec, path)
    if gpus(spec):
        main: Fields = pod.get("mainContainer") or {}
        yield from _probe_warnings(spec.liveness_probe, f"{path}.livenessProbe")
        at = f"{path}.extraPodSpec.mainContainer.livenessProbe"
        yield from _probe_warnings(main.get("livenessProbe"), at)
    for name, default in _OVERRIDDEN.items():
        if pod.get(name):
            message = f"overrides the operator's default, {default}"
            yield Problem(f"{path}.extraPodSpec.{name}", message)
    yield from update_warnings(spec, path)
    yield from _unknown_key(spec, path, context)
    models = context.base_models
    if spec.model_ref and models is not None and spec.model_ref.name not in models:
        message = (
            f'no DynamoModel in this namespace has the baseModelName "{spec.model_ref.name}" yet'
        )
        yield Problem(f"{path}.modelRef.name", message)


def _probe_warnings(probe: object, path: str) -> Iterator[Problem]:
    """Warn of a liveness probe that restarts a model server after one slow answer."""
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


def _shared_name_warnings(
    graph: DynamoGraphDeployment, context: ClusterContext
) -> Iterator[Problem]:
    """Warn of Dynamo namespaces and hosts that another namespace uses.

    The warning does not name that namespace: one tenant must not learn of another.
    """
    dynamo_namespace = names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name)
    if context.foreign_graphs is not None and dynamo_namespace in context.foreign_graphs:
        message = (
            f'a graph in another namespace uses the same Dynamo namespace "{dynamo_namespace}": processes '
            "that discover each other through etcd or NATS would mix; choose another name"
        )
        yield Problem("metadata.name", message)
    if context.foreign_hosts is None:
        return
    for key, service in sorted(graph.spec.services.items()):
        ingress = service.ingress
        if ingress is None or not ingress.enabled or not ingress.host:
            continue
        if (host := ingress_host(ingress)) in context.foreign_hosts:
            message = f'an Ingress in another namespace uses the same host "{host}"'
            yield Problem(
                f"{service_path(key)}.ingress.host", f"{message}: only one of them is served"
            )


def _claim_warnings(graph: DynamoGraphDeployment, context: ClusterContext) -> Iterator[Problem]:
    """Warn of missing PVCs, and of single-node PVCs that pods on several nodes mount."""
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
                yield from _undeclared_claim(mount.name, path, context)
            modes = _access_modes(declared, context.written_claims.get(mount.name, ()))
            if pods > 1 and modes and all(mode in _ONE_NODE for mode in modes):
                message = (
                    f'PVC "{mount.name}" is {modes[0]}, but {pods} pods mount it: those on a '
                    "second node do not start"
                )
                yield Problem(path, message)


def _undeclared_claim(name: str, path: str, context: ClusterContext) -> Iterator[Problem]:
    """Warn of a PVC about which neither the graph nor the cluster says anything."""
    if context.claims is None and name not in context.written_claims:
        message = (
            f'PVC "{name}" is not in spec.pvcs, so nothing creates it: pods wait until it exists'
        )
        yield Problem(path, message)


def _access_modes(own: PersistentVolumeClaimSpec | None, written: Sequence[str]) -> Sequence[str]:
    """Access modes of a PVC that the graph creates or that exists already; () if unknown."""
    if own is not None and own.create and own.volume_access_mode:
        return (own.volume_access_mode,)
    return written


def _unknown_key(spec: ComponentSpec, path: str, context: ClusterContext) -> Iterator[Problem]:
    """Warn of a key that the ConfigMap of an endpoint picker does not have."""
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
