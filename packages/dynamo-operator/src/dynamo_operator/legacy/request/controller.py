"""The controller of DynamoNimRequest: a tag becomes an image, and the image a DynamoNim.

A reconcile reads once (`read.py`), plans (`dynamo_legacy.build.plan`), acts, and reports. Only the step
PROBE sends a request outside the cluster; its result goes into the next plan and the status.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_graphs.settings import RenderSettings
from dynamo_legacy.api.nim import DynamoNim
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.build.image import (
    SHARED_MARKER,
    BuiltImage,
    built_image,
    registry_secret,
)
from dynamo_legacy.build.job import Build, build_job
from dynamo_legacy.build.plan import (
    BuildFacts,
    BuildPlan,
    Next,
    Reason,
    dynamo_nim,
    fetched_config,
    plan_build,
    refused,
    request_status,
)
from dynamo_legacy.build.source import Fetch, SourceUnavailable, fetch_of, token_secret
from dynamo_legacy.graph_config import graph_config_map
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status.conditions import MESSAGE_LIMIT
from dynamo_legacy.types import BuildJob, GraphConfigMap, SharedSecret
from dynamo_legacy.validation import request_problems
from dynamo_operator.legacy.registry import RegistryProbe
from dynamo_operator.legacy.request.read import RequestSnapshot, pod_watch, read_request
from dynamo_operator.reconcile.preflight import load_for_reconcile
from dynamo_operator.reconcile.report import Reporter
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import (
    Controlled,
    CreateOnly,
    DesiredObjects,
    Shared,
    shared_watch,
)
from kube_runtime.apply.result import Applied, merge
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import Result
from kube_runtime.kind import Key, Object
from kube_runtime.text import fitted
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class ImageRequestController:
    """Turns a DynamoNimRequest into an image and the DynamoNim that names it."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    settings: RenderSettings
    legacy: LegacySettings
    probe: RegistryProbe = field(default_factory=RegistryProbe)

    reconciles: ClassVar[type[Resource]] = DynamoNimRequest
    owns: ClassVar[tuple[type[Resource], ...]] = (DynamoNim, BuildJob)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: pods of Jobs, Secrets that requests share."""
        return (pod_watch(self.cache), shared_watch(SharedSecret, self.reconciles.KIND))

    async def reconcile(self, key: Key) -> Result:
        """Build the image of a request, create its DynamoNim, and report the progress."""
        request = await load_for_reconcile(DynamoNimRequest, key, self.cache, self.reporter)
        if isinstance(request, Result):
            return request
        if problems := request_problems(request, self.settings):
            text = fitted([str(problem) for problem in problems], MESSAGE_LIMIT)
            plan = refused(request, "", Reason.VALIDATION_FAILED, text)
            return await self._report(request, plan, Applied())
        try:
            image = built_image(request, self.legacy)
        except ValueError as error:
            plan = refused(request, "", Reason.VALIDATION_FAILED, f"spec: {error}")
            return await self._report(request, plan, Applied())
        snapshot = read_request(request, self.cache, self.legacy)
        facts = BuildFacts(image.name, snapshot.jobs, snapshot.pods, snapshot.nim)
        plan = plan_build(request, facts)
        if plan.step is Next.PROBE:
            answer = await self.probe.asked(image, self.legacy)
            plan = plan_build(request, replace(facts, probe=answer))
        await self._delete_stale(request, plan)
        plan, applied = await self._act(request, plan, image, snapshot)
        return await self._report(request, plan, applied)

    async def _act(
        self,
        request: DynamoNimRequest,
        plan: BuildPlan,
        image: BuiltImage,
        snapshot: RequestSnapshot,
    ) -> tuple[BuildPlan, Applied]:
        """Run the step of the plan; return the changes, and the plan or the one that refuses the request."""
        logins = list(self._logins(request, image))
        if plan.step is Next.RECORD:
            nim = dynamo_nim(request, image.name, image.secret)
            desired: list[DesiredObjects] = [self._shared(logins), *_config(request, snapshot)]
            return plan, await self.applier.apply(
                request, *desired, Controlled([nim], (DynamoNim,))
            )
        if plan.step is not Next.BUILD:
            return plan, await self.applier.apply(request, *_config(request, snapshot))
        job_or_refusal = self._job(request, image, snapshot)
        if isinstance(job_or_refusal, BuildPlan):
            return job_or_refusal, Applied()
        job, fetch = job_or_refusal
        shared = self._shared([*logins, *self._token(request, fetch)])
        applied = await self.applier.apply(request, shared)
        if applied.blocked:
            return plan, applied
        created = await self.applier.apply(request, CreateOnly([job], (BuildJob,)))
        return plan, merge((applied, created))

    def _job(
        self, request: DynamoNimRequest, image: BuiltImage, snapshot: RequestSnapshot
    ) -> tuple[Object, Fetch] | BuildPlan:
        """The Job, and how it fetches the archive; or the plan that refuses the request."""
        if snapshot.builder_error:
            text = snapshot.builder_error
            return refused(request, image.name, Reason.VALIDATION_FAILED, text)
        try:
            fetch = fetch_of(request, self.legacy)
            build = Build(image, fetch, self.legacy, snapshot.builder, snapshot.account)
            return build_job(request, build), fetch
        except SourceUnavailable as error:
            return refused(request, image.name, Reason.SOURCE_UNAVAILABLE, str(error))
        except ValueError as error:
            return refused(request, image.name, Reason.VALIDATION_FAILED, str(error))

    async def _delete_stale(self, request: DynamoNimRequest, plan: BuildPlan) -> None:
        """Delete the Jobs of earlier states of the request, with their pods."""
        for job in plan.stale:
            if job.metadata.deletion_timestamp is None:
                await self.reporter.writer.ensure_newest(request)
                await self.reporter.writer.delete(job)

    async def _report(self, request: DynamoNimRequest, plan: BuildPlan, applied: Applied) -> Result:
        status = request_status(request, plan, applied.blocked)
        return await self.reporter.applied(request, status, applied, plan.requeue_after_seconds)

    def _logins(self, request: DynamoNimRequest, image: BuiltImage) -> Iterator[Object]:
        if image.secret and not request.spec.docker_config_json_secret_name:
            yield registry_secret(request.metadata.namespace, self.legacy)

    def _token(self, request: DynamoNimRequest, fetch: Fetch) -> Iterator[Object]:
        if fetch.is_store:
            yield token_secret(request.metadata.namespace, self.legacy)

    @staticmethod
    def _shared(secrets: list[Object]) -> Shared:
        return Shared(secrets, (SharedSecret,), SHARED_MARKER)


def _config(request: DynamoNimRequest, snapshot: RequestSnapshot) -> Iterator[CreateOnly]:
    """The ConfigMap with the configuration of the graph, if the build found it in the archive."""
    text = fetched_config(snapshot.pods)
    if not text:
        return
    config_map = graph_config_map(request.key, request.metadata.name, text)
    yield CreateOnly([config_map], (GraphConfigMap,))
