"""The objects of a graph beside its components: RBAC and PVCs. `component.service` renders the components."""

from dynamo_operator import labels, names
from dynamo_operator.component.objects import canonical, graph_controlled, object_metadata
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import PersistentVolumeClaim, Role, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Kind, Object

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
    account, role, binding = (names.discovery_account(graph, suffix) for suffix in ("", "-role", "-binding"))
    rules = [dict(rule) for rule in _DISCOVERY_RULES]
    return (
        _for_account(ServiceAccount.KIND, namespace, account, account),
        _for_account(Role.KIND, namespace, role, account, rules=rules),
        role_binding(namespace, binding, account, "Role", role),
    )


def cluster_role_objects(namespace: str, account: str, cluster_role: str) -> tuple[Object, ...]:
    """A ServiceAccount and its RoleBinding to a ClusterRole of the installation."""
    binding = names.role_binding(account)
    return (
        _for_account(ServiceAccount.KIND, namespace, account, account),
        role_binding(namespace, binding, account, "ClusterRole", cluster_role),
    )


def role_binding(namespace: str, name: str, account: str, role_kind: str, role: str) -> Object:
    """A RoleBinding of one ServiceAccount to a Role or ClusterRole."""
    subject: Object = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    reference = {"apiGroup": RoleBinding.KIND.group, "kind": role_kind, "name": role}
    return _for_account(RoleBinding.KIND, namespace, name, account, subjects=[subject], roleRef=reference)


def _for_account(kind: Kind, namespace: str, name: str, account: str, **fields: object) -> Object:
    own = {
        labels.APP_COMPONENT: "rbac",
        labels.APP_MANAGED_BY: labels.MANAGER,
        labels.APP_NAME: names.label_value(account),
    }
    return kind.manifest(object_metadata(namespace, name, own, {}), **fields)


SHARED_ACCOUNTS = {"planner": names.PLANNER_SERVICE_ACCOUNT, "epp": names.EPP_SERVICE_ACCOUNT}
"""The ServiceAccounts that all graphs of a namespace share, by component type."""


def graph_shared_objects(graph: DynamoGraphDeployment, settings: RenderSettings) -> tuple[Object, ...]:
    """Return the ServiceAccounts of planners and endpoint pickers, with their RoleBindings.

    All graphs of the namespace that need them own them, and none controls them. In restricted mode the
    installation provides them.
    """
    types = {service.component_type for service in graph.spec.services.values()}
    roles = {"planner": settings.planner_cluster_role_name, "epp": settings.epp_cluster_role_name}
    objects: list[Object] = []
    for type_, account in SHARED_ACCOUNTS.items():
        cluster_role = roles[type_]
        if type_ in types and cluster_role and not settings.restricted_namespace:
            objects += cluster_role_objects(graph.metadata.namespace, account, cluster_role)
    return tuple(map(canonical, objects))


def pvc_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """Return a PVC for each entry with `create: true`, in the order of the spec.

    They are created once and never changed, since their data belongs to the user.
    """
    claims = (
        PersistentVolumeClaim.KIND.manifest(
            {"name": pvc.name, "namespace": graph.metadata.namespace},
            spec={
                "accessModes": [pvc.volume_access_mode],
                "resources": {"requests": {"storage": pvc.size}},
                "storageClassName": pvc.storage_class,
            },
        )
        for pvc in graph.spec.pvcs
        if pvc.create
    )
    return graph_controlled(graph, claims)
