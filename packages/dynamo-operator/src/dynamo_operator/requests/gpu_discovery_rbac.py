"""Let profiling Jobs with GPU discovery read nodes until their requests end.

Nodes are cluster-scoped, so no RoleBinding can grant access to them, and garbage collection would not
delete a ClusterRoleBinding with its request. So the installation creates one, and the operator writes its
subjects when such a Job starts, and again when a request ends or is deleted.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from dynamo_graphs.api import names
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.request_record import accepted_spec, recorded
from dynamo_graphs.plan.request import Stage, stage
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import Client
from kube_runtime.errors import Forbidden, NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.types.rbac import ClusterRoleBinding, Subject

_BEFORE_THE_END = frozenset((Stage.VALIDATION, Stage.START, Stage.PROFILING))
"""The state is not enough: a request that could not start is Failed, and may be starting right now."""


@dataclass(slots=True)
class GpuDiscoveryRbac:
    """The subjects of the ClusterRoleBinding of that name."""

    client: Client
    writer: Writer
    cache: Cache
    name: str
    _listed: set[str] | None = field(default=None, init=False)
    """None: not read yet."""

    async def admit(self, request: DynamoGraphDeploymentRequest) -> str:
        """Add the ServiceAccount of the request's Job, and remove those that need it no longer.

        Returns why that is not possible; "" if it succeeded.

        Raises:
            Conflict: another client wrote the subjects; the caller retries.
            OperatorError: the API server could not be reached or failed.
        """
        try:
            await self._write(self._searching(request))
        except (NotFound, Forbidden) as error:
            return (
                "profiling may not read nodes, which spec.enableGpuDiscovery requires: "
                f"{error.message}"
            )
        return ""

    async def withdraw(self) -> None:
        """Remove the ServiceAccounts of namespaces without GPU discovery.

        Sends no request if there is none to remove, except once after the start of the process.

        Raises:
            Conflict: another client wrote the subjects; the caller retries.
            OperatorError: the API server could not be reached or failed.
        """
        desired = self._searching()
        if not self.name or (self._listed is not None and self._listed <= desired):
            return
        with suppress(NotFound, Forbidden):  # without the binding, nothing is granted
            await self._write(desired)
        self._listed = desired

    async def _write(self, desired: set[str]) -> None:
        key = Key("", self.name)
        binding = await self.client.get(ClusterRoleBinding, key)
        if set(binding.subjects) != {_subject(namespace) for namespace in desired}:
            body: Object = {
                "metadata": {"resourceVersion": binding.metadata.resource_version},
                "subjects": [_account(namespace) for namespace in sorted(desired)],
            }
            await self.writer.merge_patch(ClusterRoleBinding, key, body, uid=binding.metadata.uid)
        self._listed = desired

    def _searching(self, *requests: DynamoGraphDeploymentRequest) -> set[str]:
        """The namespaces of all requests whose Jobs discover GPUs, or may start to."""
        requests = (*requests, *self.cache.list(DynamoGraphDeploymentRequest))
        return {request.metadata.namespace for request in requests if may_search(request)}


def may_search(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the Job of the request discovers GPUs, or may start to."""
    record = recorded(request)
    has_ended = record is not None and (record.created or record.results)
    if request.spec is None or has_ended or stage(request) not in _BEFORE_THE_END:
        return False
    spec = accepted_spec(request)
    return bool(spec.enable_gpu_discovery) and not spec.profiling_config.service_account_name


def _subject(namespace: str) -> Subject:
    return Subject("ServiceAccount", names.PROFILING_SERVICE_ACCOUNT, namespace)


def _account(namespace: str) -> Object:
    subject = _subject(namespace)
    return {"kind": subject.kind, "name": subject.name, "namespace": subject.namespace}
