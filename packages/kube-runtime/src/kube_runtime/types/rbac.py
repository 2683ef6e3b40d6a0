"""rbac.authorization.k8s.io/v1: Role, RoleBinding and ClusterRoleBinding."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class Role(Resource):
    """A Role, with its rules as JSON text."""

    KIND = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")

    rules: msgspec.Raw = msgspec.Raw(b"null")


class RoleBinding(Resource):
    """A RoleBinding, with its role and subjects as JSON text."""

    KIND = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")

    role_ref: msgspec.Raw = msgspec.Raw(b"null")
    subjects: msgspec.Raw = msgspec.Raw(b"null")


class Subject(Struct):
    """One subject of a binding."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class ClusterRoleBinding(Resource):
    """A ClusterRoleBinding, with its subjects."""

    KIND = Kind(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        namespaced=False,
    )

    subjects: tuple[Subject, ...] = ()
