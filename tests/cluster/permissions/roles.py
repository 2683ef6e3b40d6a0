"""The operator's roles, from the list in code, for a ServiceAccount that has nothing else."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dynamoctl.installation.permissions import GRANTED, PROFILING_NODES, RULES, Feature, Name, Where, policy
from kube_runtime.types.meta import Object

NAMES = {
    Name.ELECTION_LEASE: "dynamo.nvidia.com",
    Name.SSH_SECRET: "mpi-run-ssh-secret",
    Name.WEBHOOK_SECRET: "webhook-server-cert",
    Name.METRICS_SECRET: "dynamo-operator-metrics-cert",
    Name.WEBHOOK_CONFIGURATION: "dynamo-operator-validating",
    Name.PLANNER_ROLE: "dynamo-operator-planner",
    Name.EPP_ROLE: "dynamo-operator-epp",
    Name.PROFILING_ROLE: "dynamo-operator-dgdr-profiling",
    Name.PROFILING_NODES: "dynamo-operator-dgdr-profiling-nodes",
}
ACCOUNT = "operator"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an operator runs and what it may do. Without `graphs` it works in all namespaces."""

    own: str
    features: Collection[Feature]
    graphs: str = ""
    reads_cluster: bool = True

    def objects(self) -> Iterator[Object]:
        """Its ServiceAccount, and roles with exactly the permissions that the list has for it."""
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": self.own},
        }
        election = self.graphs or "kube-system"
        places = [("own", Where.OWN, self.own), ("election", Where.ELECTION, election)]
        places.append(("graphs", Where.GRAPHS, self.graphs))
        if self.reads_cluster:
            places.append(("cluster", Where.CLUSTER, ""))
        for title, where, namespace in places:
            rules = policy(RULES, self.features, where, NAMES)
            if rules:
                yield from self._role(f"{self.own}-{title}", namespace, rules)
        for granted in GRANTED:
            rules = [rule.as_policy(NAMES) for rule in granted.rules]
            yield rbac("ClusterRole", f"dynamo-operator-{granted.name}", rules=rules)
        name = NAMES[Name.PROFILING_NODES]
        rules = [rule.as_policy(NAMES) for rule in PROFILING_NODES]
        yield rbac("ClusterRole", name, rules=rules)
        yield rbac("ClusterRoleBinding", name, roleRef=role_reference("ClusterRole", name))

    def _role(self, name: str, namespace: str, rules: list[Object]) -> Iterator[Object]:
        kind = "Role" if namespace else "ClusterRole"
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.own}
        yield rbac(kind, name, namespace, rules=rules)
        yield bound(kind, name, namespace, subject)


def rbac(kind: str, name: str, namespace: str = "", /, **content: object) -> Object:
    """An object of RBAC; without a namespace one of the cluster."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def role_reference(kind: str, name: str) -> Object:
    return {"apiGroup": _RBAC, "kind": kind, "name": name}


def bound(kind: str, name: str, namespace: str, subject: Object) -> Object:
    """The binding of a role of that kind and name, under the same name."""
    return rbac(f"{kind}Binding", name, namespace, roleRef=role_reference(kind, name), subjects=[subject])
