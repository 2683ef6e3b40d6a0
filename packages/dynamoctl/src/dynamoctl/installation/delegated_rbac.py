"""Permissions of planners, endpoint pickers and profiling Jobs.

The operator binds these roles by name and holds none of them. In a restricted installation they are Roles of
its namespace with their ServiceAccounts, because a restricted operator may not bind ClusterRoles.
"""

from dataclasses import dataclass

from dynamoctl.installation.permissions import NVIDIA
from dynamoctl.installation.rule import Feature, Rule

_READ = ("get", "list", "watch")
_ALL = ("get", "list", "watch", "create", "update", "patch", "delete")
_WHOLE_CLUSTER = Feature.CLUSTER_WIDE


@dataclass(frozen=True, slots=True)
class Granted:
    """A role of such pods; `name` is the suffix of the ClusterRole.

    `account`, `role` and `binding` are the names in a restricted installation.
    """

    name: str
    account: str
    role: str
    binding: str
    rules: tuple[Rule, ...]


_FIND_WORKERS = (
    Rule("discovery.k8s.io", ("endpointslices",), _READ, "Discovers workers."),
    Rule(NVIDIA, ("dynamoworkermetadatas",), _ALL, "Discovers workers, and registers itself."),
)

PLANNER = Granted(
    "planner",
    "planner-serviceaccount",
    "planner-role",
    "planner-binding",
    (
        Rule(
            NVIDIA,
            ("dynamographdeployments", "dynamocomponentdeployments"),
            ("get", "list", "create", "update", "patch"),
            "Scales the services of its graph.",
        ),
        Rule(
            NVIDIA,
            ("dynamographdeploymentscalingadapters/scale",),
            ("patch",),
            "Scales services that have an adapter.",
        ),
        *_FIND_WORKERS,
    ),
)
EPP = Granted(
    "epp",
    "epp-serviceaccount",
    "epp-role",
    "epp-binding",
    (
        Rule(
            "inference.networking.x-k8s.io",
            ("inferencepools", "inferenceobjectives", "inferencemodelrewrites"),
            _READ,
            "Reads its picking rules.",
        ),
        Rule("inference.networking.k8s.io", ("inferencepools",), _READ, "Reads its pool."),
        Rule("", ("pods",), _READ, "Reads the pods to pick from."),
        *_FIND_WORKERS,
    ),
)
PROFILING = Granted(
    "dgdr-profiling",
    "dgdr-profiling-job",
    "dgdr-profiling-job",
    "dgdr-profiling-job",
    (
        Rule(
            "",
            ("configmaps",),
            ("create", "get", "update", "patch", "delete"),
            "Writes its results.",
        ),
        Rule(NVIDIA, ("dynamographdeploymentrequests",), ("get",), "Reads its request."),
        Rule(
            NVIDIA,
            ("dynamographdeployments",),
            ("get", "list", "watch", "create", "delete"),
            "Creates temporary graphs.",
        ),
        # Not `create`: a pod may name any ServiceAccount of its namespace, the operator's too.
        Rule("", ("pods",), ("get", "list", "delete"), "Watches and deletes their pods."),
        Rule("", ("pods/log",), ("get",), "Reads why one failed."),
    ),
)
PROFILING_NODES = (Rule("", ("nodes",), _READ, "Discovers GPUs.", feature=_WHOLE_CLUSTER),)
"""Separate, because nodes are cluster-scoped: a RoleBinding cannot grant them."""
GRANTED = (PLANNER, EPP, PROFILING)
