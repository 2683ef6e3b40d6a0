"""The names of everything that belongs to a graph.

Rendering, validation and status must agree on every name, so all of them are here. The API server must
accept them: a valid text stays unchanged, a forbidden character becomes a dash, and a text that is too
long is cut and ends in a hash of the whole. A change of any of these functions would rename objects of
running graphs.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_operator import labels
from kube_runtime.types.meta import R, Resource

LABEL_LIMIT = 63
SUBDOMAIN_LIMIT = 253
HASH_LENGTH = 8
GLOBAL_DYNAMO_NAMESPACE = "dynamo"
PLANNER_SERVICE_ACCOUNT = "planner-serviceaccount"
EPP_SERVICE_ACCOUNT = "epp-serviceaccount"
PROFILING_SERVICE_ACCOUNT = "dgdr-profiling-job"
DEFAULT_KAI_QUEUE = "dynamo"
MARKER_LEASE = "dynamo-operator-namespace-scope"

_NOT_IN_LABEL = re.compile(r"[^a-z0-9-]")
_NOT_IN_SUBDOMAIN = re.compile(r"[^a-z0-9.-]")
_NOT_IN_VALUE = re.compile(r"[^A-Za-z0-9._-]")


def short_hash(text: str) -> str:
    """Hash a text to eight hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def dns_label(text: str, limit: int = LABEL_LIMIT) -> str:
    """Convert a text to a DNS label: at most `limit` of `a-z 0-9 -`, alphanumeric at both ends.

    The limit must be 9 or more.
    """
    return _fitted(text, _NOT_IN_LABEL.sub("-", text.lower()).strip("-"), limit)


def dns_subdomain(text: str) -> str:
    """Convert a text to a DNS subdomain: labels joined by dots, at most 253 characters."""
    labels = (part.strip("-") for part in _NOT_IN_SUBDOMAIN.sub("-", text.lower()).split("."))
    return _fitted(text, ".".join(filter(None, labels)), SUBDOMAIN_LIMIT)


def label_value(text: str) -> str:
    """Convert a text to a label value: at most 63 of `A-Z a-z 0-9 . _ -`; "" stays ""."""
    return _fitted(text, _NOT_IN_VALUE.sub("-", text).strip("._-"), LABEL_LIMIT) if text else ""


def _fitted(text: str, cleaned: str, limit: int) -> str:
    if cleaned and len(cleaned) <= limit:
        return cleaned
    head = cleaned[: limit - HASH_LENGTH - 1].rstrip("._-")
    return f"{head}-{short_hash(text)}" if head else f"x{short_hash(text)}"


def component_name(graph: str, service: str) -> str:
    """The component of a service, its workload, Ingress and scaling adapter: `{graph}-{service}`."""
    return dns_label(f"{graph}-{service}")


def revision_component_name(graph: str, service: str, revision: str) -> str:
    """The component of a service in one revision of the workers: `{graph}-{service}-{revision}`.

    The revision is never shortened, since components of two revisions exist side by side.
    """
    head = dns_label(f"{graph}-{service}", LABEL_LIMIT - 1 - len(revision))
    return f"{head}-{revision}"


def workload_name(component: str) -> str:
    """The Deployment and the Ingress or VirtualService of a component."""
    return dns_label(component)


def debug_workload_name(component: str) -> str:
    """The second Deployment of a component, for debugging."""
    return dns_label(f"{component}-d")


def group_name(component: str, index: int) -> str:
    """The LeaderWorkerSet and the PodGroup of one multinode replica.

    The LeaderWorkerSet creates a StatefulSet `{name}-0`, whose pods have its name and a hash of 11 characters
    in one label value.
    """
    return dns_label(f"{component}-{index}", LABEL_LIMIT - len("-0") - len("-0123456789"))


def service_name(component: str, suffix: str = "") -> str:
    """The Service of a component. The suffix distinguishes the Services for debugging."""
    return dns_label(f"{component}{suffix}")


def volume_name(claim: str) -> str:
    """The volume of a PVC, whose own name may have dots and be longer than a volume allows."""
    label = dns_label(claim)
    return label if label == claim else dns_label(f"{label[:48].rstrip('-')}-{short_hash(claim)}")


def dynamo_namespace(kubernetes_namespace: str, graph: str, revision: str = "") -> str:
    """The Dynamo namespace of a graph, or of one revision of its workers, which no other pods share.

    A label value, without dots, at which its readers would split it.
    """
    if revision:
        prefix = revisions_namespace_prefix(kubernetes_namespace, graph)
        return label_value(f"{prefix}-{revision}")
    return label_value(f"{kubernetes_namespace}-{graph}".replace(".", "-"))


def revisions_namespace_prefix(kubernetes_namespace: str, graph: str) -> str:
    """The prefix of the Dynamo namespaces of all revisions of a graph's workers.

    Frontends match by prefix, and `prod-chat` is also a prefix of `prod-chat-beta`. Kubernetes names have no
    underscore, so a prefix that ends in one belongs to this graph alone.
    """
    return f"{dynamo_namespace(kubernetes_namespace, graph)}_"


def model_hash(model: str) -> str:
    """Hash of a model name, for labels."""
    return short_hash(model)


def model_service_name(model: str) -> str:
    """The headless Service of all pods in a namespace that serve a model."""
    return f"dynamo-model-{model_hash(model)}"


def discovery_account(graph: str, suffix: str = "") -> str:
    """The ServiceAccount with which the pods of a graph discover each other through the API server.

    Its Role has the suffix `-role`, its RoleBinding `-binding`.
    """
    return dns_subdomain(f"{graph}-k8s-service-discovery{suffix}")


def role_binding(service_account: str) -> str:
    """The RoleBinding of a fixed ServiceAccount, such as the planner's."""
    return f"{service_account}-binding"


def epp_config_map(graph: str) -> str:
    """The ConfigMap with the configuration of the graph's endpoint picker."""
    return dns_subdomain(f"{graph}-epp-config")


def leader_wait_config_map(component: str) -> str:
    """The ConfigMap with the script by which the workers of a group wait for their leader."""
    return dns_subdomain(f"{component}-wait-for-leader")


def inference_pool(graph: str) -> str:
    """The InferencePool of the graph's frontends."""
    return dns_label(f"{graph}-pool")


def profiling_job(request: str) -> str:
    """The profiling Job of a request. Its name is also a label value of its pods."""
    return label_value(f"profile-{request}")


def profiling_base(request: str, uid: str) -> str:
    """The ConfigMap with the completed base graph of a request.

    The uid keeps it apart from that of a deleted request of the same name, which may still be terminating.
    """
    return dns_subdomain(f"dgdr-base-{request}-{uid.partition('-')[0]}")


def profiling_output(request: str) -> str:
    """The ConfigMap with the profiling results of a request."""
    return dns_subdomain(f"dgdr-output-{request}")


COMBINED_LIMIT = 45
"""Characters of set, scaling group and clique in a pod name. Source: admission of Grove v1alpha1."""

LEADER_SUFFIX = "-ldr"
WORKER_SUFFIX = "-wkr"
_SHORTEST = HASH_LENGTH + 1
_SET_LIMIT = COMBINED_LIMIT - 2 * _SHORTEST - len(LEADER_SUFFIX)
"""Characters left to the set beside the shortest name of a multinode service."""


@dataclass(frozen=True, slots=True)
class GroveNames:
    """The name of a graph's PodCliqueSet, and of each service within it."""

    set: str
    services: Mapping[str, str]

    def child(self, service: str) -> str:
        """The PodClique or PodCliqueScalingGroup of a service, as Grove names it."""
        return f"{self.set}-0-{self.services[service]}"


def grove_names(graph: str, services: Mapping[str, bool], present: str = "") -> GroveNames:
    """The names for a graph with these services; the values are whether each is multinode.

    `present` is the name of its set, if another operator has chosen it. It stays while all services fit.

    Grove joins the names of set, scaling group and clique in pod names, and limits their sum. Names must
    never change later: names that fit stay, services are shortened before the set, and the set only if a
    service could not fit beside it.
    """
    whole = dns_label(graph, COMBINED_LIMIT)
    fitting = (name for name in (present, whole) if name and _fits(name, services))
    set_name = next(fitting, dns_label(graph, _SET_LIMIT))
    return GroveNames(
        set_name, {key: dns_label(key, room) for key, room in _room(set_name, services).items()}
    )


def _fits(set_name: str, services: Mapping[str, bool]) -> bool:
    return all(
        room >= _SHORTEST or len(dns_label(key, COMBINED_LIMIT)) <= room
        for key, room in _room(set_name, services).items()
    )


def _room(set_name: str, services: Mapping[str, bool]) -> dict[str, int]:
    """Characters left to each service; a scaling group and its clique share them."""
    room = COMBINED_LIMIT - len(set_name)
    shared = (room - len(LEADER_SUFFIX)) // 2
    return {key: shared if is_multinode else room for key, is_multinode in services.items()}


COMPONENT, GROVE = "component", "grove"
"""The workload providers of a graph. Its pods have other names on each."""


# `nvidia.com/workload-provider` records whether a graph runs as components or on Grove. A graph
# without the record counts as one of components; code that handles a new graph chooses first.
def is_on_grove(graph: Resource) -> bool:
    """Whether the graph's workloads are one PodCliqueSet."""
    return graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER) == GROVE


_PRESENT_SET = "pod-clique-set"
"""An annotation that is never stored."""


def on_provider(graph: R, provider: str, present_set: str = "") -> R:
    """Return the graph with its provider in the annotation, which is stored only if there is a choice.

    Beside it is the name of its PodCliqueSet, if another operator has chosen that.
    """
    added = {labels.WORKLOAD_PROVIDER: provider, _PRESENT_SET: present_set}
    annotations = {**graph.metadata.annotations, **added}
    if not present_set:
        del annotations[_PRESENT_SET]
    return replace(graph, metadata=replace(graph.metadata, annotations=annotations))


def present_set(graph: Resource) -> str:
    """The name of the graph's PodCliqueSet that another operator has chosen; "" if there is none."""
    return graph.metadata.annotations.get(_PRESENT_SET, "")


def kai_queue(graph: Resource) -> str:
    """The KAI scheduler queue for the pods of a graph on Grove."""
    asked = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    return asked or DEFAULT_KAI_QUEUE
