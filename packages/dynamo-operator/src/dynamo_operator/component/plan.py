"""What rendering a component is based on: its plan, the launch on several nodes, merged values, metadata."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    ComponentSpec,
    DynamoComponentDeployment,
    IngressSpec,
    ResourceItem,
    Resources,
)
from dynamo_operator.component.framework import GPU, is_python, is_shell, several_flags
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import NamespaceDefaults
from kube_runtime.types.meta import Object, amount

SHELL = ("/bin/sh", "-c")
_SPACE = re.compile(r"[\t\n\f\r ]")
_SEPARATOR = re.compile(r"([|&;])")
_STARTS_PYTHON = re.compile(rf"python[0-9.]*{_SPACE.pattern}")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_DOLLARS = re.compile(r"\$[$(]")


# Names and ranks are known only inside a pod. The kubelet expands `$(NAME)` in arguments; a shell
# expands `$NAME` and computes. Orchestrators define these references, backends use them in their
# launch.
#
# Only this module turns arguments into shell text. A user's word, such as `$(cat x)`, must reach
# the program unchanged and is quoted; shell syntax of the operator is a `Fragment`. An argument of
# `sh -c` is a script and stays one.
#
# Flags are added where a command starts the framework: after the arguments of a program, through a
# shell if only a shell can express them; in a script after the word that names the framework.
@dataclass(frozen=True, slots=True)
class Fragment:
    """Shell syntax of the operator, such as `$((RANK + 1))`; never a user's text.

    `argument` is the same as an argument that the kubelet expands; "" if only a shell can express it.
    """

    text: str
    argument: str = ""

    def followed_by(self, text: str) -> "Fragment":
        """Append plain text, such as a port."""
        return Fragment(f"{self.text}{text}", self.argument and f"{self.argument}{text}")


Word: TypeAlias = str | Fragment
"""A text that is one argument of a launch, or a fragment for the shell."""


def shell_line(words: Iterable[Word]) -> str:
    """Join words to a command line, quoting texts."""
    return " ".join(word.text if isinstance(word, Fragment) else quoted(word) for word in words)


def quoted(text: str) -> str:
    """Quote a text as one shell word, if it needs quotes.

    The kubelet would read `$(` without `)` up to the next `)` of the script; it turns `$$(` into `$(`.
    """
    if _PLAIN.fullmatch(text):
        return text
    end = text.rfind(")") + 1
    rest = _DOLLARS.sub(lambda match: "$$(" if match[0] == "$(" else match[0], text[end:])
    inner = f"{text[:end]}{rest}".replace("'", "'\\''")
    return f"'{inner}'"


@dataclass(frozen=True, slots=True)
class Hosts:
    """The addresses of the pods of a group, as its orchestrator defines them.

    `worker_rank` counts from 1; the leader is 0. `rank_term` is the same number inside `$(( ))`, where the
    kubelet expands no `$(NAME)`: it reads a name up to the first `)`. With `names_come_late`, the names of
    the workers may not resolve yet when the leader starts.
    """

    leader: Fragment
    workers: tuple[Fragment, ...]
    worker_rank: Fragment
    rank_term: str
    names_come_late: bool = False


@dataclass(frozen=True, slots=True)
class GroupNode:
    """The pod of a group that a template is for: the leader, or any of the workers."""

    is_leader: bool
    hosts: Hosts

    @property
    def count(self) -> int:
        """The number of nodes, and of pods, of the group."""
        return 1 + len(self.hosts.workers)

    @property
    def rank(self) -> Word:
        """The pod's number in the group; the leader's is 0."""
        return "0" if self.is_leader else self.hosts.worker_rank


def users_words(texts: Iterable[str]) -> list[Word]:
    """A user's arguments as words. One that contains several flags becomes a fragment that a shell splits.

    The Go operator joins all arguments into a script without quotes, and manifests rely on it there
    (`docs/decisions/0034-manifests-of-strangers.md`).
    """
    return [Fragment(flags) if (flags := several_flags(text)) else text for text in texts]


def with_flags(container: Object, flags: Sequence[Word], framework: str) -> Object:
    """Add the flags to the command of the container, if it starts the framework."""
    command, args = list(container.get("command", ())), list(container.get("args", ()))
    if _is_program(command, args, framework):
        words = [*users_words(args), *flags]
        if all(isinstance(word, str) or word.argument for word in words):
            return {**container, "args": [word if isinstance(word, str) else word.argument for word in words]}
        return {**container, "command": ["sh", "-c"], "args": [shell_line(["exec", *command, *words])]}
    for index, text in enumerate(args):
        changed = in_script(text, flags, framework)
        if changed != text:
            return {**container, "args": [*args[:index], changed, *args[index + 1 :]]}
    return container


def in_script(script: str, flags: Sequence[Word], framework: str) -> str:
    """Add the flags to every command of a script that starts the framework.

    They follow the final word with the framework's name after a Python. A single pattern for this would take
    quadratic time in a text that users choose.
    """
    text = shell_line(flags)
    return "".join(_in_command(part, text, framework) for part in _SEPARATOR.split(script))


def _in_command(command: str, text: str, framework: str) -> str:
    python = _STARTS_PYTHON.search(command)
    last = command.rfind(framework, python.end()) if python else -1
    if last < 0:
        return command
    space = _SPACE.search(command, last)
    end = space.start() if space else len(command)
    return f"{command[:end]} {text}{command[end:]}"


def _is_program(command: list[str], args: list[str], framework: str) -> bool:
    # A program accepts the framework's flags after its arguments; a shell does not.
    if not command or is_shell(command):
        return False
    is_wrapped = any(map(is_python, [*command, *args])) and f"dynamo.{framework}" in [*command, *args]
    return is_python(command[0]) or is_wrapped


def without_default_port(container: Object, name: str = "system") -> Object:
    """Remove the port of a worker that does not listen, which monitoring would report as down."""
    ports = [port for port in container.get("ports", ()) if port.get("name") != name]
    rest = {key: value for key, value in container.items() if key != "ports"}
    return {**rest, "ports": ports} if ports else rest


def without_probes(container: Object) -> Object:
    """Remove the probes: a worker of a group serves no health endpoints."""
    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    return {name: value for name, value in container.items() if name not in probes}


# A role has the defaults of a component type (frontend, worker, …), a backend what its inference
# framework needs, an orchestrator the workload that runs the pods. Roles are in `component.pod`,
# orchestrators in `component.render`, and each backend is a module of `component.backends`. The
# plan has every decision, so that later code needs no defaults.
@dataclass(frozen=True, slots=True)
class Mount:
    """A PVC in the main container."""

    claim: str
    path: str
    is_cache: bool


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of a ConfigMap."""

    config_map: str
    key: str


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """A component's spec with defaults, names and choices resolved; empty texts and collections mean "none".

    One replica has `nodes` nodes with `gpus` GPUs on each. `selector` are labels that only this component's
    pods have; a Deployment selects its pods by `workload_label`, with its own name as value. Without
    `knows_istio` a requested VirtualService is ignored.
    """

    namespace: str
    name: str
    graph: str
    dynamo_namespace: str
    component_type: str
    replicas: int
    nodes: int
    role: "Role"
    backend: "Backend"
    orchestrator: "Orchestrator"
    selector: dict[str, str]
    workload_label: str
    labels: dict[str, str]
    annotations: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    switches: dict[str, str]
    is_discovered_by_kubernetes: bool
    environment: tuple[Object, ...]
    environment_secret: str
    resources: Object
    gpus: int
    mounts: tuple[Mount, ...]
    shared_memory_size: str
    main_container: Object
    pod: Object
    probes: dict[str, Object]
    namespace_defaults: NamespaceDefaults
    service_account: str
    ingress: IngressSpec | None
    knows_istio: bool
    epp_config: ConfigKey
    settings: RenderSettings

    def is_on(self, switch: str) -> bool:
        """Whether that annotation is exactly `true`."""
        return self.switches.get(switch) == "true"


@dataclass(frozen=True, slots=True)
class LeaderService:
    """The port on which the leader of a group accepts workers. For Ray, an open port is not sufficient."""

    port: int
    is_ray: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """The defaults of a component type: ports of its Service, main container, and fields of the pod.

    An Ingress leads to the first port. The container has no settings of the user yet.
    """

    service_ports: tuple[Object, ...]
    container: Callable[[ComponentPlan], Object]
    pod: Callable[[ComponentPlan], Object] = lambda _plan: {}


@dataclass(frozen=True, slots=True)
class Backend:
    """What an inference framework needs, on one node and on several; by default nothing.

    `container` adapts the main container, which has the user's settings. `launch` makes it a container of a
    multinode group, which mounts `launch_volumes`. A worker of a group must reach `leader_service`, if any,
    before it starts. With `starts_leader_last` the leader starts after its workers.
    """

    launch: Callable[[Object, ComponentPlan, GroupNode], Object] = lambda main, _plan, _node: main
    container: Callable[[Object, ComponentPlan], Object] = lambda main, _plan: main
    launch_volumes: Callable[[ComponentPlan], list[Object]] = lambda _plan: []
    leader_service: Callable[[ComponentPlan], LeaderService | None] = lambda _plan: None
    starts_leader_last: bool = False


@dataclass(frozen=True, slots=True)
class Rendered(Iterable[Object]):
    """Objects that are rendered each time they are read: a component may have a thousand groups."""

    render: Callable[[], Iterator[Object]]

    def __iter__(self) -> Iterator[Object]:
        return self.render()


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """The workloads that run the pods of a component.

    `workloads` returns the objects that own the pods, in canonical form and in order of creation.
    `serving_labels` select the pods that receive requests; {} for all.
    """

    workloads: Callable[[ComponentPlan], Iterable[Object]]
    serving_labels: dict[str, str]


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Object)

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
"""Handlers of a probe, which has exactly one."""


# Values are plain JSON, so that unknown fields survive. 0 and false count as set; null, "" and
# empty lists do not, since typed clients write them for unset fields. Lists are replaced, not
# merged. A probe with its own handler drops that of the default.
def canonical(desired: Object) -> Object:
    """Return a deep copy with the keys of every map sorted.

    Encoding and decoding JSON is ten times as fast as sorting map by map.
    """
    return _DECODER.decode(_ENCODER.encode(desired))


def pruned(value: object) -> Any:
    """Copy the value without nulls and empty lists."""
    if isinstance(value, Mapping):
        kept = {name: pruned(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not None and child != []}
    if isinstance(value, list | tuple):
        return [pruned(child) for child in value if child is not None]
    return value


def merged(default: object, user: object) -> Any:
    """Merge the user's value over the default."""
    if user is None or user in ("", []):
        return default
    if isinstance(default, Mapping) and isinstance(user, Mapping):
        both = {name: merged(value, user.get(name)) for name, value in default.items()}
        return both | {name: value for name, value in user.items() if name not in default}
    return user


def has_handler(probe: Object) -> bool:
    """Whether the probe has a handler, and not only periods and thresholds."""
    return any(probe.get(name) is not None for name in HANDLERS)


def merged_probe(default: Object, user: Object) -> Object:
    """Merge the user's probe over the default; the user's handler replaces another kind of handler."""
    handlers = [name for name in HANDLERS if user.get(name) is not None]
    if not handlers:
        return dict(merged(default, user))
    rest = {name: value for name, value in default.items() if name not in HANDLERS}
    kept = {name: default[name] for name in handlers if name in default}
    return dict(merged(rest | kept, user))


def merged_environment(low: Iterable[Object], high: Iterable[Object]) -> list[Object]:
    """Merge variables by name, sorted; `high` wins, and within a list the last entry."""
    entries = {entry["name"]: entry for entry in (*low, *high)}
    return [entries[name] for name in sorted(entries)]


def variable(name: str, value: str) -> Object:
    """An environment variable; an empty value is omitted, as the API server does."""
    return {"name": name, "value": value} if value else {"name": name}


def variable_of_field(name: str, path: str) -> Object:
    """An environment variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resources(short: Resources | None) -> Object:
    """Convert the short form to resources of a container; {} if it is empty.

    A GPU request that repeats the limit is omitted, as the Go operator does, so that templates stay the same.
    """
    if short is None:
        return {}
    requests, limits = short.requests or ResourceItem(), short.limits or ResourceItem()
    gpu = requests.gpu_type or limits.gpu_type or GPU
    upper = _side(limits, limits.gpu_type or requests.gpu_type or GPU)
    lower = _side(requests, gpu)
    is_repeated = gpu in lower and gpu in upper and amount(lower[gpu]) == amount(upper[gpu])
    if is_repeated and requests.gpu and gpu not in requests.custom:
        del lower[gpu]
    sides: Object = {"requests": lower, "limits": upper, "claims": list(short.claims)}
    return {name: value for name, value in sides.items() if value}


def with_device_limits(requirements: Object) -> Object:
    """Add a limit for every device that is only requested.

    Kubernetes cannot overcommit devices: a request requires an equal limit, and a limit alone is also
    the request.
    """
    requests: Mapping[str, object] = requirements.get("requests", {})
    limits: Mapping[str, object] = requirements.get("limits", {})
    missing = {
        name: value
        for name, value in requests.items()
        if name not in limits and cannot_be_overcommitted(name)
    }
    return {**requirements, "limits": {**limits, **missing}} if missing else requirements


def cannot_be_overcommitted(name: str) -> bool:
    """Whether Kubernetes requires request and limit to be equal: for devices and huge pages."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return name.startswith("hugepages-") if is_native else not name.startswith("requests.")


def _side(item: ResourceItem, gpu: str) -> dict[str, str]:
    fixed = {"cpu": item.cpu, "memory": item.memory, gpu: item.gpu}
    return {name: value for name, value in (fixed | item.custom).items() if value}


# On every object the operator's take precedence, then the service's, then the graph's. On pods the
# user's `extraPodMetadata` overrides the rest, except for labels in selectors.
def object_metadata(
    namespace: str, name: str, own_labels: Mapping[str, str], own_annotations: Mapping[str, str]
) -> Object:
    """Return the metadata of an object, without empty maps."""
    maps = {"labels": own_labels, "annotations": own_annotations}
    return {"name": name, "namespace": namespace, **{key: texts for key, texts in maps.items() if texts}}


def component_labels(component: DynamoComponentDeployment, graph: str) -> dict[str, str]:
    """The labels that identify the component's objects and pods."""
    spec = component.spec
    own = {
        labels.COMPONENT: names.label_value(spec.service_name or component.metadata.name),
        labels.DYNAMO_NAMESPACE: _dynamo_namespace(component, graph),
    }
    if graph:
        own[labels.GRAPH] = names.label_value(graph)
    if graph and (revision := component.metadata.labels.get(labels.WORKER_HASH)):
        own[labels.WORKER_HASH] = revision
    if spec.model_ref and spec.model_ref.name:
        own[labels.BASE_MODEL_HASH] = names.model_hash(spec.model_ref.name)
    return own


def service_dynamo_namespace(graph: DynamoGraphDeployment, service: ComponentSpec, revision: str = "") -> str:
    """The Dynamo namespace of a service, as a label value."""
    if service.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    return names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name, revision)


def service_labels(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's labels of every object of a graph's service; the service's own win."""
    both = graph.spec.labels | service.labels
    return {key: text for key, text in both.items() if key not in labels.SELECTING}


def service_annotations(graph: DynamoGraphDeployment, service: ComponentSpec) -> dict[str, str]:
    """The user's annotations of every object of a graph's service; the service's own win."""
    both = graph.spec.annotations | service.annotations
    return {key: text for key, text in both.items() if key not in labels.BOOKKEEPING}


def discovery_backend(switches: Mapping[str, str], settings: RenderSettings) -> str:
    """The discovery backend: that of the annotation, else that of the settings."""
    backend = switches.get(labels.DISCOVERY_BACKEND)
    return backend if backend in ("kubernetes", "etcd") else settings.discovery_backend


def with_graph_metadata(graph: DynamoGraphDeployment, desired: Object) -> Object:
    """Add the graph's labels and annotations to one of its objects, whose own take precedence."""
    metadata: Object = desired["metadata"]
    both = {
        "labels": graph.spec.labels | metadata.get("labels", {}),
        "annotations": graph.spec.annotations | metadata.get("annotations", {}),
    }
    return {**desired, "metadata": metadata | {name: texts for name, texts in both.items() if texts}}


def user_labels(component: DynamoComponentDeployment) -> dict[str, str]:
    """The user's labels of every object, without those in selectors."""
    both = component.spec.labels | component.metadata.labels
    return {key: value for key, value in both.items() if key not in labels.SELECTING}


def annotations(spec: ComponentSpec) -> dict[str, str]:
    """Annotations of every object but the pods."""
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    both = spec.annotations | extra
    if spec.model_ref and spec.model_ref.name:
        both[labels.BASE_MODEL] = spec.model_ref.name
    omitted = labels.BOOKKEEPING | {labels.RESTART_AT}
    return {key: value for key, value in both.items() if key not in omitted}


def pod_labels(spec: ComponentSpec) -> dict[str, str]:
    """Labels of pods in addition to those of every object."""
    added: dict[str, str] = {}
    if spec.annotations.get(labels.ENABLE_METRICS) != "false":
        added[labels.METRICS_ENABLED] = "true"
    extra = spec.extra_pod_metadata.labels if spec.extra_pod_metadata else {}
    added |= {key: value for key, value in extra.items() if key not in labels.SELECTING}
    if spec.component_type:
        added[labels.COMPONENT_TYPE] = spec.component_type
    if spec.sub_component_type:
        added[labels.SUB_COMPONENT_TYPE] = spec.sub_component_type
    return added


def pod_annotations(spec: ComponentSpec) -> dict[str, str]:
    """Annotations of pods, without those that control the operator: a change of them must not roll pods."""
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    omitted = labels.SWITCHES | labels.BOOKKEEPING
    kept = {key: value for key, value in spec.annotations.items() if key not in omitted}
    kept |= {key: value for key, value in extra.items() if key not in labels.BOOKKEEPING}
    if restart := spec.annotations.get(labels.RESTART_AT):
        kept[labels.RESTART_AT] = restart
    return kept


def _dynamo_namespace(component: DynamoComponentDeployment, graph: str) -> str:
    """The component's Dynamo namespace; without a graph that of the spec, else the component's name."""
    if component.spec.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    if graph:
        revision = component.metadata.labels.get(labels.WORKER_HASH, "")
        return names.dynamo_namespace(component.metadata.namespace, graph, revision)
    return names.label_value(component.spec.dynamo_namespace or component.metadata.name)
