"""Run the operators of any suite with exactly the chart's role, if DYNAMO_TEST_CHART_ROLE is set.

The rules are those of the list that generates the chart, with all features. Only rules of one namespace are
granted in all, because each test creates its own namespace.
"""

import json
import os
from functools import lru_cache
from pathlib import Path

import yaml

from cluster.permissions.roles import NAMES, bound, rbac
from devcluster.components import Kubectl
from devcluster.programs import find
from devcluster.progress import Silent
from dynamoctl.installation.permissions import RULES, Feature, Name, Where, policy
from kube_runtime.types.meta import Object

VARIABLE = "DYNAMO_TEST_CHART_ROLE"
_NAMESPACE = "kube-system"
_ACCOUNT = "operator-with-the-chart-s-role"
# Every cluster has this ClusterRole.
_NAMES = NAMES | dict.fromkeys(
    (Name.PLANNER_ROLE, Name.EPP_ROLE, Name.PROFILING_ROLE, Name.PROFILING_NODES), "view"
)


def operator_kubeconfig(kubeconfig: Path) -> Path:
    """The kubeconfig file for an operator: the given one, or one with the chart's role."""
    if VARIABLE not in os.environ or kubeconfig.name != "admin.yaml":
        return kubeconfig
    return _limited(kubeconfig)


@lru_cache
def _limited(kubeconfig: Path) -> Path:
    kubectl = Kubectl(find(Silent())["kubectl"], kubeconfig, kubeconfig.with_name("cache"))
    body = {"apiVersion": "v1", "kind": "List", "items": [*_objects()]}
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    token = kubectl("create", "token", _ACCOUNT, f"--namespace={_NAMESPACE}", "--duration=8h")
    content = yaml.safe_load(kubeconfig.read_text("utf-8"))
    for user in content["users"]:
        user["user"] = {"token": token.strip()}
    limited = kubeconfig.with_name("chart-role.yaml")
    limited.write_text(yaml.safe_dump(content), encoding="utf-8")
    return limited


def _objects() -> list[Object]:
    rules = [rule for where in Where for rule in policy(RULES, set(Feature), where, _NAMES)]
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": _NAMESPACE}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": _ACCOUNT, "namespace": _NAMESPACE},
        },
        rbac("ClusterRole", _ACCOUNT, rules=rules),
        bound("ClusterRole", _ACCOUNT, "", subject),
    ]
