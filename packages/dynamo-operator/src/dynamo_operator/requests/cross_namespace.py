"""Check whether a namespace accepts graphs from requests in another namespace.

RBAC of the target namespace decides, each time the operator is about to write there: every ServiceAccount
of the request's namespace must be allowed to create what the operator would create. The author of the
request does not count: no object records the author where users cannot forge it
(docs/decisions/0028-cross-namespace.md).
"""

from dataclasses import dataclass

from kube_runtime.client.requests import Client
from kube_runtime.errors import Forbidden
from kube_runtime.types.access import SubjectAccessReview, question

CREATED: tuple[tuple[str, str], ...] = (
    ("nvidia.com", "dynamographdeployments"),
    ("", "configmaps"),
)
"""API group and resource of what the operator creates for a request."""


@dataclass(frozen=True, slots=True)
class Grants:
    """RBAC of target namespaces. `accepts_all`: the administrator accepts all requests in all namespaces."""

    client: Client
    accepts_all: bool = False
    is_restricted: bool = False

    async def missing(self, source: str, target: str) -> tuple[str, ...]:
        """The resources that ServiceAccounts of `source` may not create in `target`; empty if accepted.

        Raises:
            OperatorError: an access review failed.
        """
        if self.accepts_all:
            return ()
        names = tuple(f"{resource}.{group}".rstrip(".") for group, resource in CREATED)
        if self.is_restricted:
            return names
        try:
            allowed = [await self._may_create(source, target, *resource) for resource in CREATED]
        except Forbidden:  # the operator cannot verify it, so nothing is accepted
            return names
        return tuple(name for name, may in zip(names, allowed, strict=True) if not may)

    async def _may_create(self, source: str, target: str, group: str, resource: str) -> bool:
        of_source = f"system:serviceaccounts:{source}"
        attributes = {"group": group, "resource": resource, "verb": "create", "namespace": target}
        access = {
            "groups": ["system:serviceaccounts", of_source, "system:authenticated"],
            "resourceAttributes": attributes,
        }
        body = question(SubjectAccessReview.KIND, access)
        return (await self.client.create(SubjectAccessReview, body)).status.allowed


def not_granted(source: str, target: str, missing: tuple[str, ...]) -> str:
    """The message about a namespace that does not accept graphs from requests in `source`."""
    return (
        f"spec.deploymentOverrides.namespace: namespace {target} does not accept graphs from "
        f"requests in {source} (expected a RoleBinding in {target} that allows the group "
        f"system:serviceaccounts:{source} to create {' and '.join(missing)}): remove the field, "
        f"or ask an administrator of {target}"
    )
