"""ServiceAccounts of pods, with their Roles and RoleBindings."""

from dynamo_graphs.api import labels, names
from dynamo_graphs.render.metadata import object_metadata
from kube_runtime.kind import Object

_GROUP = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_DISCOVERY_RULES = (
    {"apiGroups": [""], "resources": ["endpoints"], "verbs": _READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {
        "apiGroups": ["nvidia.com"],
        "resources": ["dynamoworkermetadatas"],
        "verbs": ["create", "get", "list", "watch", "update", "patch", "delete"],
    },
)


def discovery_objects(namespace: str, graph: str) -> tuple[Object, ...]:
    """The ServiceAccount, Role and RoleBinding for discovery through the API server."""
    account = names.discovery_service_account(graph)
    role = names.discovery_role(graph)
    return (
        service_account(namespace, account),
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "Role",
            "metadata": _metadata(namespace, role, account),
            "rules": [dict(rule) for rule in _DISCOVERY_RULES],
        },
        role_binding(namespace, names.discovery_role_binding(graph), account, "Role", role),
    )


def cluster_role_objects(namespace: str, account: str, cluster_role: str) -> tuple[Object, ...]:
    """A ServiceAccount and its RoleBinding to a ClusterRole of the installation."""
    binding = names.role_binding(account)
    return (
        service_account(namespace, account),
        role_binding(namespace, binding, account, "ClusterRole", cluster_role),
    )


def service_account(namespace: str, name: str) -> Object:
    """A ServiceAccount."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(namespace, name, name),
    }


def role_binding(namespace: str, name: str, account: str, role_kind: str, role: str) -> Object:
    """A RoleBinding of one ServiceAccount to a Role or ClusterRole."""
    subject: Object = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(namespace, name, account),
        "subjects": [subject],
        "roleRef": {"apiGroup": _GROUP, "kind": role_kind, "name": role},
    }


def _metadata(namespace: str, name: str, account: str) -> Object:
    own = {
        labels.APP_COMPONENT: "rbac",
        labels.APP_MANAGED_BY: labels.MANAGER,
        labels.APP_NAME: names.label_value(account),
    }
    return object_metadata(namespace, name, own, {})
