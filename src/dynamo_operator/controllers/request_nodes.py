"""Lets profiling Jobs that are to find GPUs read nodes, and no longer than there is such a request.

The hard part is that nodes are in no namespace, so no RoleBinding can grant them, and that a right in the
cluster belongs to no request: nothing would take it away. So there is one ClusterRoleBinding, which the
installation makes, and its list is written anew whenever such a Job starts.

Source: specification `dgdr` O-10.
"""

from dataclasses import dataclass

from dynamo_operator.api import names
from dynamo_operator.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.errors import Forbidden, NotFound
from dynamo_operator.kube.kind import Key, Object
from dynamo_operator.kube.types.rbac import ClusterRoleBinding, Subject
from dynamo_operator.kube.writer import Writer
from dynamo_operator.lifecycle.request import Stage, accepted_spec, stage

_BEFORE_THE_END = frozenset((Stage.JUDGED, Stage.STARTED, Stage.PROFILED))
"""Whatever the state says: one that could not start has failed, and may be starting at this moment."""


@dataclass(frozen=True, slots=True)
class NodeReaders:
    """The list in the ClusterRoleBinding of that name."""

    client: Client
    writer: Writer
    cache: Cache
    name: str

    async def admit(self, request: DynamoGraphDeploymentRequest) -> str:
        """List the account of the request's Job, and no other that has nothing to find any more.

        Returns why that cannot be done; "" if it is.

        Raises:
            Conflict: somebody else wrote the list; the caller tries again.
            OperatorError: the API server could not be reached or failed.
        """
        wanted = self._wanted(request)
        key = Key("", self.name)
        try:
            found = await self.client.get(ClusterRoleBinding, key)
            if set(found.subjects) != {_subject(each) for each in wanted}:
                body: Object = {
                    "metadata": {"resourceVersion": found.metadata.resource_version},
                    "subjects": [_account(each) for each in sorted(wanted)],
                }
                await self.writer.merge_patch(ClusterRoleBinding, key, body, uid=found.metadata.uid)
        except (NotFound, Forbidden) as error:
            return f"profiling may not read nodes, which spec.enableGpuDiscovery needs: {error.message}"
        return ""

    def _wanted(self, request: DynamoGraphDeploymentRequest) -> set[str]:
        """The namespaces of all requests that look for GPUs, or may begin to."""
        known = (request, *self.cache.list(DynamoGraphDeploymentRequest))
        return {each.metadata.namespace for each in known if _may_search(each)}


def _may_search(request: DynamoGraphDeploymentRequest) -> bool:
    if request.spec is None or stage(request) not in _BEFORE_THE_END:
        return False
    spec = accepted_spec(request)
    return bool(spec.enable_gpu_discovery) and not spec.profiling_config.service_account_name


def _subject(namespace: str) -> Subject:
    return Subject("ServiceAccount", names.PROFILING_SERVICE_ACCOUNT, namespace)


def _account(namespace: str) -> Object:
    found = _subject(namespace)
    return {"kind": found.kind, "name": found.name, "namespace": found.namespace}
