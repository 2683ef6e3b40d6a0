"""A graph on Grove: one PodCliqueSet, in which each service is a clique, or a scaling group of two.

Grove does not allow some changes once a set exists: a clique's minimum number of pods stays as it is in the
live template, and sizes are changed on the live cliques only, so that a change of size is never a change of
the template.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.api.grove_names import LEADER_SUFFIX, WORKER_SUFFIX
from dynamo_graphs.facts import LiveTemplate
from dynamo_graphs.render.group import GroupNode, Hosts, Reference
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.pod import pod_template
from dynamo_graphs.render.shell import Fragment
from dynamo_graphs.types.grove import PodCliqueSet
from kube_runtime.kind import Object

_KAI = "kai-scheduler"


@dataclass(frozen=True, slots=True)
class Member:
    """A service in a set. `name` is its part of the names under the set."""

    name: str
    plan: ComponentPlan


@dataclass(frozen=True, slots=True)
class Gang:
    """A graph's set. `has_kai` is whether the KAI scheduler places pods, `queue` where they wait then."""

    name: str
    namespace: str
    members: tuple[Member, ...]
    has_kai: bool
    queue: str
    termination_delay_seconds: int
    present: Mapping[str, LiveTemplate]


def pod_clique_set(gang: Gang) -> Object:
    """The set of a graph."""
    is_ordered = any(_starts_leader_last(each) for each in gang.members)
    startup = "CliqueStartupTypeExplicit" if is_ordered else "CliqueStartupTypeAnyOrder"
    template: Object = {
        "cliques": [clique for each in gang.members for clique in _cliques(gang, each)],
        "cliqueStartupType": startup,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
    }
    if groups := [_scaling_group(gang, each) for each in gang.members if each.plan.nodes > 1]:
        template["podCliqueScalingGroups"] = groups
    if gang.termination_delay_seconds > 0:
        template["terminationDelay"] = _duration(gang.termination_delay_seconds)
    return {
        "apiVersion": PodCliqueSet.KIND.api_version,
        "kind": PodCliqueSet.KIND.name,
        "metadata": {"name": gang.name, "namespace": gang.namespace},
        "spec": {"replicas": 1, "template": template},
    }


def _starts_leader_last(member: Member) -> bool:
    return member.plan.nodes > 1 and member.plan.backend.STARTS_LEADER_LAST


def _cliques(gang: Gang, member: Member) -> Sequence[Object]:
    """One clique; the leader and the workers of a service that spans several nodes."""
    plan, name = member.plan, member.name
    if plan.nodes == 1:
        return (_clique(gang, member, name, None, size=_size(gang, name, plan.replicas), least=1),)
    leader, workers = f"{name}{LEADER_SUFFIX}", f"{name}{WORKER_SUFFIX}"
    hosts = _hosts(name, plan.nodes)
    first = _clique(gang, member, leader, GroupNode(is_leader=True, hosts=hosts), size=1, least=1)
    if _starts_leader_last(member):
        first["spec"]["startsAfter"] = [workers]
    rest = plan.nodes - 1
    node = GroupNode(is_leader=False, hosts=hosts)
    return (first, _clique(gang, member, workers, node, size=rest, least=rest))


def _clique(
    gang: Gang, member: Member, name: str, node: GroupNode | None, *, size: int, least: int
) -> Object:
    plan = member.plan
    template = pod_template(plan, plan.name, node=node)
    metadata, pod = template["metadata"], template["spec"]
    present = gang.present.get(name, LiveTemplate())
    has_kai = gang.has_kai if present.scheduler is None else present.scheduler == _KAI
    if has_kai and pod.get("schedulerName", _KAI) == _KAI:
        pod["schedulerName"] = _KAI
        metadata["labels"][labels.KAI_QUEUE_LABEL] = gang.queue
    if present.restart:
        kept = {labels.RESTART_AT: present.restart}
        metadata["annotations"] = kept | metadata.get("annotations", {})
    spec = {
        "roleName": name,
        "replicas": size,
        "minAvailable": present.min_available or least,
        "podSpec": pod,
    }
    return {"name": name, **metadata, "spec": spec}


def _scaling_group(gang: Gang, member: Member) -> Object:
    name = member.name
    return {
        "name": name,
        "cliqueNames": [f"{name}{LEADER_SUFFIX}", f"{name}{WORKER_SUFFIX}"],
        "replicas": _size(gang, name, member.plan.replicas),
        "minAvailable": 1,
    }


def _size(gang: Gang, name: str, wanted: int) -> int:
    """The size in the template. Grove takes no 0 there; the live object is scaled to it."""
    present = gang.present.get(name, LiveTemplate()).replicas
    return max(1, wanted) if present is None else present


def _hosts(name: str, nodes: int) -> Hosts:
    """How the pods of a scaling group find each other, by variables that Grove sets in them."""

    def host(suffix: str, index: int) -> Reference:
        text = (
            f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{name}{suffix}-{index}"
            ".$(GROVE_HEADLESS_SERVICE)"
        )
        return Reference(Fragment(text), text)

    return Hosts(
        leader=host(LEADER_SUFFIX, 0),
        workers=tuple(host(WORKER_SUFFIX, index) for index in range(nodes - 1)),
        worker_rank=Reference(Fragment("$((GROVE_PCLQ_POD_INDEX + 1))")),
    )


def _duration(seconds: int) -> str:
    """The seconds as Go prints a duration, such as `15m0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
