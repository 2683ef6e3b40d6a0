"""What the token of a cluster-wide operator is worth in the namespaces that it has to keep out of."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adversary.tenant import Refused, Tenant, apply
from cluster.conftest import ControlPlane
from devcluster.components import KubectlError
from dynamoctl.installation.manifests import Choices, manifests
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

ACCOUNT = "dynamo-platform-dynamo-operator-controller-manager"
POLICY = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
KEPT = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", *POLICY)
PLANNER = "dynamo-platform-dynamo-operator-planner"
DENIED = "the Dynamo operator creates nothing in namespace"
TRY = ("create", "--dry-run=server", "-f", "-")
POD = {
    "serviceAccountName": "clusterrole-aggregation-controller",
    "containers": [{"name": "a", "image": "a"}],
}
PODS = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
}
BOUND: dict[str, Any] = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PLANNER},
    "subjects": [],
}


@pytest.fixture
def operator(kinds: ControlPlane, namespace: str) -> Iterator[Tenant]:
    """The ServiceAccount of an operator that `dynamoctl install` has installed in that namespace."""
    found = [each for each in manifests(Choices(namespace)) if each["kind"] in KEPT]
    apply(kinds, *found)
    token = Tenant(kinds, namespace, ACCOUNT)
    # A policy counts some moments after it is stored.
    world = kinds.world(namespace)
    world.until(lambda: not may(token, a("Deployment", "apps/v1", "kube-system", spec=PODS)))
    yield token
    body = {"apiVersion": "v1", "kind": "List", "items": [*found]}
    kinds.kubectl("delete", "--wait=false", "-f", "-", input=json.dumps(body))


def a(kind: str, version: str, namespace: str, name: str = "x", **content: Any) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def may(operator: Tenant, body: Object) -> bool:
    """Whether the policy lets that user create the object. Raises Refused for any other refusal."""
    try:
        operator.run(f"--namespace={body['metadata']['namespace']}", *TRY, body=body)
    except Refused as error:
        if DENIED not in str(error):
            raise
        return False
    return True


def test_the_token_creates_nothing_in_excluded_namespaces(kinds: ControlPlane, operator: Tenant) -> None:
    rbac = "rbac.authorization.k8s.io/v1"
    for namespace in ("kube-system", operator.namespace):
        for body in (
            a("Deployment", "apps/v1", namespace, spec=PODS),
            a("Job", "batch/v1", namespace, spec={"template": {"spec": {**POD, "restartPolicy": "Never"}}}),
            a("ServiceAccount", "v1", namespace),
            a("ConfigMap", "v1", namespace),
            a("Role", rbac, namespace, rules=[]),
            a("RoleBinding", rbac, namespace, **BOUND),
        ):
            assert not may(operator, body), body
    assert may(operator, a("Deployment", "apps/v1", "default", spec=PODS))


def test_what_the_operator_needs_there_it_may(kinds: ControlPlane, operator: Tenant) -> None:
    own, leases = operator.namespace, "coordination.k8s.io/v1"
    assert may(operator, a("Lease", leases, "kube-system", "dynamo.nvidia.com"))
    assert not may(operator, a("Lease", leases, "kube-system", "kube-controller-manager-2"))
    assert may(operator, a("Secret", "v1", own, "webhook-server-cert"))
    assert not may(operator, a("Secret", "v1", own, "another"))
    about: dict[str, Any] = {"involvedObject": {"namespace": own, "name": "x", "kind": "Pod"}}
    assert may(operator, a("Event", "v1", own, **about))


def test_others_may_write_there_as_before(kinds: ControlPlane, operator: Tenant) -> None:
    body = a("Deployment", "apps/v1", operator.namespace, spec=PODS)
    kinds.kubectl(*TRY, input=json.dumps(body))


def test_users_learn_at_admission_that_no_graph_runs_there(kinds: ControlPlane, operator: Tenant) -> None:
    remedy = "dynamo-operator.namespacePolicy.releaseNamespace=false"
    spec = {"services": {"Frontend": {"componentType": "frontend", "replicas": 1}}}
    body = a("DynamoGraphDeployment", "nvidia.com/v1alpha1", operator.namespace, spec=spec)
    with pytest.raises(KubectlError, match=remedy):
        kinds.kubectl("create", "-f", "-", input=json.dumps(body))
    elsewhere = {**body, "metadata": {**body["metadata"], "namespace": "kube-public"}}
    with pytest.raises(KubectlError, match="use another namespace") as refused:
        kinds.kubectl("create", "-f", "-", input=json.dumps(elsewhere))
    assert remedy not in str(refused.value)
    kinds.kubectl(*TRY, input=json.dumps(body))  # as `dynamoctl check` tries the webhooks
