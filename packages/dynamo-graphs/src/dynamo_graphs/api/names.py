"""The name of everything that belongs to a graph, and the one function that makes names fit.

Rendering, validation and status must agree on every name, so all of them are here. Names must stay equal to
those of running graphs, and the API server must accept them: a text that fits stays as it is, a forbidden
character becomes a dash, and what is too long keeps a readable head and ends in a hash of the whole. Same
input, same output, forever: peers and upgrades rely on it.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_graphs.api.graph import DynamoGraphDeployment

LABEL_LIMIT = 63
SUBDOMAIN_LIMIT = 253
HASH_LENGTH = 8
GLOBAL_DYNAMO_NAMESPACE = "dynamo"
PLANNER_SERVICE_ACCOUNT = "planner-serviceaccount"
EPP_SERVICE_ACCOUNT = "epp-serviceaccount"
PROFILING_SERVICE_ACCOUNT = "dgdr-profiling-job"
DEFAULT_KAI_QUEUE = "dynamo"

_NOT_IN_LABEL = re.compile(r"[^a-z0-9-]")
_NOT_IN_SUBDOMAIN = re.compile(r"[^a-z0-9.-]")
_NOT_IN_VALUE = re.compile(r"[^A-Za-z0-9._-]")


def short_hash(text: str) -> str:
    """Hash of the text: eight hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def dns_label(text: str) -> str:
    """The text as a DNS label: at most 63 of `a-z 0-9 -`, alphanumeric at both ends."""
    return shortened(text, LABEL_LIMIT)


def shortened(text: str, limit: int) -> str:
    """The text as a DNS label of at most that many characters, which must be 9 or more."""
    return _fitted(text, _NOT_IN_LABEL.sub("-", text.lower()).strip("-"), limit)


def dns_subdomain(text: str) -> str:
    """The text as a DNS subdomain: labels joined by dots, at most 253 characters."""
    labels = (part.strip("-") for part in _NOT_IN_SUBDOMAIN.sub("-", text.lower()).split("."))
    return _fitted(text, ".".join(filter(None, labels)), SUBDOMAIN_LIMIT)


def label_value(text: str) -> str:
    """The text as a label value: at most 63 of `A-Z a-z 0-9 . _ -`; "" stays ""."""
    return _fitted(text, _NOT_IN_VALUE.sub("-", text).strip("._-"), LABEL_LIMIT) if text else ""


def _fitted(text: str, cleaned: str, limit: int) -> str:
    if cleaned and len(cleaned) <= limit:
        return cleaned
    head = cleaned[: limit - HASH_LENGTH - 1].rstrip("._-")
    return f"{head}-{short_hash(text)}" if head else f"x{short_hash(text)}"


def component_name(graph: str, service: str) -> str:
    """A service's component, its workload, Ingress and scaling adapter: `{graph}-{service}`."""
    return dns_label(f"{graph}-{service}")


def generation_component_name(graph: str, service: str, generation: str) -> str:
    """A service's component in one generation of the workers: `{graph}-{service}-{generation}`.

    What is too long gives way, never the generation: two of them live side by side.
    """
    head = shortened(f"{graph}-{service}", LABEL_LIMIT - 1 - len(generation))
    return f"{head}-{generation}"


def workload_name(component: str) -> str:
    """The Deployment and the Ingress of a component."""
    return dns_label(component)


def debug_workload_name(component: str) -> str:
    """The second Deployment of a component, for debugging."""
    return dns_label(f"{component}-d")


def group_name(component: str, index: int) -> str:
    """One replica over several nodes: its LeaderWorkerSet, and the PodGroup of its pods.

    LeaderWorkerSet puts a StatefulSet named `{name}-0` below it, whose pods carry its name and a hash
    of 11 characters in one label value.
    """
    return shortened(f"{component}-{index}", LABEL_LIMIT - len("-0") - len("-0123456789"))


def service_name(component: str, suffix: str = "") -> str:
    """A component's Service. The suffix distinguishes the Services for debugging."""
    return dns_label(f"{component}{suffix}")


def volume_name(claim: str) -> str:
    """The volume of a PVC. PVCs may have dots and long names, volumes may not."""
    label = dns_label(claim)
    return label if label == claim else dns_label(f"{label[:48].rstrip('-')}-{short_hash(claim)}")


def dynamo_namespace(kubernetes_namespace: str, graph: str) -> str:
    """A graph's Dynamo namespace; without dots, since its readers split it there."""
    return label_value(f"{kubernetes_namespace}-{graph}".replace(".", "-"))


def generations_dynamo_namespace(kubernetes_namespace: str, graph: str) -> str:
    """What the Dynamo namespaces of all generations of a graph's workers begin with.

    Readers look for a prefix, and `prod-chat` is one of `prod-chat-beta` too. Names of Kubernetes have no
    underscore, so behind one no other graph can begin.
    """
    return f"{dynamo_namespace(kubernetes_namespace, graph)}_"


def generation_dynamo_namespace(kubernetes_namespace: str, graph: str, generation: str) -> str:
    """The Dynamo namespace of one revision of the workers, shared with no other pods."""
    return f"{generations_dynamo_namespace(kubernetes_namespace, graph)}-{generation}"


def model_hash(model: str) -> str:
    """Hash of a model name, for labels."""
    return short_hash(model)


def model_service_name(model: str) -> str:
    """The headless Service over all pods of a namespace that serve a model."""
    return f"dynamo-model-{model_hash(model)}"


def discovery_service_account(graph: str) -> str:
    """The ServiceAccount with which a graph's pods discover each other through the API server."""
    return dns_subdomain(f"{graph}-k8s-service-discovery")


def discovery_role(graph: str) -> str:
    """The Role of that ServiceAccount."""
    return dns_subdomain(f"{graph}-k8s-service-discovery-role")


def discovery_role_binding(graph: str) -> str:
    """The RoleBinding of that Role and ServiceAccount."""
    return dns_subdomain(f"{graph}-k8s-service-discovery-binding")


def role_binding(service_account: str) -> str:
    """The RoleBinding of a fixed ServiceAccount, such as the planner's."""
    return f"{service_account}-binding"


def epp_config_map(graph: str) -> str:
    """The ConfigMap with the configuration of a graph's endpoint picker."""
    return dns_subdomain(f"{graph}-epp-config")


def leader_wait_config_map(component: str) -> str:
    """The ConfigMap with the script that makes the workers of a group wait for their leader."""
    return dns_subdomain(f"{component}-wait-for-leader")


def inference_pool(graph: str) -> str:
    """The InferencePool over a graph's frontends."""
    return dns_label(f"{graph}-pool")


def profiling_job(request: str) -> str:
    """The Job that profiles for a request. Its name is a label of its pods, so it fits into one."""
    return label_value(f"profile-{request}")


def profiling_base(request: str, uid: str) -> str:
    """The ConfigMap with the graph from which profiling starts, where it is not the user's own.

    One that an earlier request of that name has left is on its way out, so it has another name.
    """
    return dns_subdomain(f"dgdr-base-{request}-{uid.partition('-')[0]}")


def profiling_output(request: str) -> str:
    """The ConfigMap with the profiling results of a request."""
    return dns_subdomain(f"dgdr-output-{request}")


COMBINED_LIMIT = 45
LEADER_SUFFIX = "-ldr"
WORKER_SUFFIX = "-wkr"
_SHORTEST = HASH_LENGTH + 1
_SET_LIMIT = COMBINED_LIMIT - 2 * _SHORTEST - len(LEADER_SUFFIX)
"""What every service leaves to the set, spread over nodes or not, when it is shortened itself."""


@dataclass(frozen=True, slots=True)
class GangNames:
    """The name of a graph's PodCliqueSet, and the part of each service in names under it."""

    set: str
    services: Mapping[str, str]

    def child(self, service: str) -> str:
        """The name of a service's PodClique or PodCliqueScalingGroup, which Grove creates."""
        return f"{self.set}-0-{self.services[service]}"


def gang_names_of(graph: DynamoGraphDeployment) -> GangNames:
    """The names of a graph's PodCliqueSet and of what is under it."""
    return gang_names(
        graph.metadata.name,
        {key: service.nodes > 1 for key, service in graph.spec.services.items()},
    )


def gang_names(graph: str, services: Mapping[str, bool]) -> GangNames:
    """The names for a graph with these services; the values are whether each is multinode."""
    whole = shortened(graph, COMBINED_LIMIT)
    fits = all(
        _fits(whole, key, is_multinode=is_multinode) for key, is_multinode in services.items()
    )
    chosen = whole if fits else shortened(graph, _SET_LIMIT)
    return GangNames(
        chosen,
        {
            key: shortened(key, _room(chosen, is_multinode=is_multinode))
            for key, is_multinode in services.items()
        },
    )


def _fits(set_name: str, key: str, *, is_multinode: bool) -> bool:
    room = _room(set_name, is_multinode=is_multinode)
    return room >= _SHORTEST or len(shortened(key, COMBINED_LIMIT)) <= room


def _room(set_name: str, *, is_multinode: bool) -> int:
    """What the set leaves to the name of a service, which a scaling group and its cliques share."""
    room = COMBINED_LIMIT - len(set_name)
    return (room - len(LEADER_SUFFIX)) // 2 if is_multinode else room
