"""A tenant with a real token and only the permissions that a test gives, and operators to attack."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.permissions.roles import ACCOUNT, NAMES, Installation, bound, rbac
from cluster.world import World
from devcluster.components import KubectlError
from dynamoctl.installation.permissions import Feature, Name
from kube_runtime.types.meta import Object

ROLES = (
    "--operator-image=dynamo-operator:test",
    f"--planner-cluster-role-name={NAMES[Name.PLANNER_ROLE]}",
    f"--epp-cluster-role-name={NAMES[Name.EPP_ROLE]}",
    f"--dgdr-profiling-cluster-role-name={NAMES[Name.PROFILING_ROLE]}",
    f"--dgdr-profiling-nodes-cluster-role-name={NAMES[Name.PROFILING_NODES]}",
)


class Refused(AssertionError):
    """What the API server answered the tenant."""


@dataclass(slots=True)
class Tenant:
    """A ServiceAccount of one namespace; `run` is kubectl with its token."""

    plane: ControlPlane
    namespace: str
    name: str
    _kubeconfig: Path | None = field(default=None, init=False)

    def create(self) -> "Tenant":
        where = f"--namespace={self.namespace}"
        self.plane.kubectl("create", "serviceaccount", self.name, where)
        return self

    def may(self, verbs: str, *resources: str, group: str = "nvidia.com", within: str = "") -> None:
        """Grant verbs (with commas between) on resources, in its own namespace or `within` another."""
        rule = {"apiGroups": [group], "resources": [*resources], "verbs": verbs.split(",")}
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        title = f"{self.namespace}-{self.name}-{'-'.join(resources)}".replace("/", "-").replace("*", "all")
        grant(self.plane, within or self.namespace, title, rule, subject)

    def run(self, *arguments: str, body: Object | None = None) -> str:
        """What kubectl prints. Raises Refused."""
        if self._kubeconfig is None:
            found = self.plane.instance.service_account_kubeconfig(self.namespace, self.name)
            self._kubeconfig = found
        text = json.dumps(body) if body is not None else None
        words = (f"--kubeconfig={self._kubeconfig}", f"--namespace={self.namespace}", *arguments)
        try:
            return self.plane.kubectl(*words, input=text)
        except KubectlError as error:
            raise Refused(str(error)) from None


def grant(plane: ControlPlane, namespace: str, title: str, rule: Object, subject: Object) -> None:
    apply(plane, rbac("Role", title, namespace, rules=[rule]), bound("Role", title, namespace, subject))


def accept_requests(plane: ControlPlane, source: str, target: str) -> None:
    """Have `target` accept graphs from requests in `source`, as docs/requests.md says."""
    role, group = "graphs-from-requests", f"system:serviceaccounts:{source}"
    where = f"--namespace={target}"
    resources = "--resource=dynamographdeployments.nvidia.com,configmaps"
    plane.kubectl("create", "role", role, where, "--verb=create", resources)
    plane.kubectl("create", "rolebinding", role, where, f"--role={role}", f"--group={group}")


def apply(plane: ControlPlane, *objects: Object) -> None:
    body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(body))


@contextmanager
def cluster_wide(world: World, plane: ControlPlane, log: Path, *flags: str) -> Iterator[Path]:
    """Yield the kubeconfig of an operator whose ServiceAccount has exactly the chart's roles there."""
    features = {Feature.CLUSTER_WIDE, Feature.WEBHOOKS, Feature.OWN_CERTIFICATE, Feature.OWN_BUNDLE}
    apply(plane, *Installation(world.namespace, features).objects())
    kubeconfig = plane.instance.service_account_kubeconfig(world.namespace, ACCOUNT)
    with OperatorProcess(kubeconfig, log, (*OFF, *ROLES, *flags)) as process:
        process.ready()
        yield kubeconfig
