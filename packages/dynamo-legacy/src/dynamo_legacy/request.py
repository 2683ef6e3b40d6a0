"""The controller of DynamoNimRequest, which builds images."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_legacy.api import DynamoNim, DynamoNimRequest
from dynamo_legacy.build import source
from dynamo_legacy.build.job import BUILDER_ACCOUNT, IS_BUILDER, Build, build_job, job_name
from dynamo_legacy.build.plan import (
    BuildFacts,
    BuildPlan,
    Next,
    Reason,
    believed_config,
    config_report,
    dynamo_nim,
    fetched_config,
    plan_build,
    refused,
    request_status,
)
from dynamo_legacy.names import (
    BuilderAccount,
    BuilderConfig,
    BuildJob,
    BuildPod,
    GraphConfigMap,
    SharedSecret,
)
from dynamo_legacy.registry import RegistryProbe
from dynamo_legacy.render import graph_config_map
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status import MESSAGE_LIMIT
from dynamo_legacy.validation import request_problems
from dynamo_operator.requests.api import JobInFull, JobPodInFull
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import Reporter, load_for_reconcile
from dynamo_operator.shared.transforms import BoundedContent, bounded, namespace_of, slimmed
from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, DesiredObjects, Shared, shared_watch
from kube_runtime.apply.result import Applied, controls
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.errors import NotFound, TooLarge
from kube_runtime.types.meta import Key, Object, Resource, fitted

_MOST_PODS = 20
"""Pods of a Job that report a configuration. The Job has three at most; of more, none counts."""
_MOST_BYTES = 1024 * 1024
"""Of the JSON of a pod or a Job, which is decoded with its spec."""

JOB_SELECTOR = f"{IS_BUILDER}=true"
"""Label selector of builds. Jobs of an earlier operator have the label too, and count as well."""


@dataclass(frozen=True, slots=True)
class RequestSnapshot:
    """The inputs of one reconcile.

    `jobs` are those that the request controls, `pods` the pods of these Jobs. `builder` are the
    administrator's settings, `builder_error` why they are invalid.
    """

    jobs: tuple[BuildJob, ...]
    pods: tuple[BuildPod, ...]
    nim: DynamoNim | None
    account: str
    builder: source.BuilderSettings
    builder_error: str = ""


def read_request(request: DynamoNimRequest, cache: Cache, settings: LegacySettings) -> RequestSnapshot:
    """Read the inputs of a request."""
    namespace = request.metadata.namespace
    jobs = tuple(job for job in cache.list(BuildJob, namespace) if controls(request, job))
    uids = {job.metadata.uid for job in jobs}
    pods = tuple(
        pod
        for pod in cache.list(BuildPod, namespace)
        if pod.metadata.controller is not None and pod.metadata.controller.uid in uids
    )
    names = (account.metadata.name for account in cache.list(BuilderAccount, namespace))
    builder, error = source.NO_SETTINGS, ""
    if settings.builder_namespace:
        config = cache.get(BuilderConfig, Key(settings.builder_namespace, source.CONFIG_MAP))
        try:
            builder = source.builder_settings(config.data) if config is not None else source.NO_SETTINGS
        except ValueError as problem:
            error = str(problem)
    return RequestSnapshot(
        jobs=jobs,
        pods=pods,
        nim=cache.get(DynamoNim, request.key),
        account=min(names, default="default"),
        builder=builder,
        builder_error=error,
    )


def request_informers(namespace: str, settings: LegacySettings) -> Iterator[Informer[Resource]]:
    """The informers of Jobs, pods, Secrets and ServiceAccounts of builds, selected by labels."""
    yield Informer(BuildJob, namespace=namespace, labels=JOB_SELECTOR, transform=slimmed)
    yield Informer(BuildPod, namespace=namespace, labels=JOB_SELECTOR, transform=slimmed)
    marked = "=".join(source.SHARED_MARKER)
    yield bounded(SharedSecret, BoundedContent(namespace_of), namespace=namespace, labels=marked)
    yield Informer(BuilderAccount, namespace=namespace, labels=f"{BUILDER_ACCOUNT}=true", transform=slimmed)
    if settings.builder_namespace:
        yield Informer(
            BuilderConfig, namespace=settings.builder_namespace, fields=f"metadata.name={source.CONFIG_MAP}"
        )


def pod_watch(cache: Cache) -> Watches:
    """Wake a request when a pod of one of its Jobs changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        owner = changed.metadata.controller
        if owner is None:
            return
        job = cache.get(BuildJob, Key(changed.metadata.namespace, owner.name))
        if job is not None and job.metadata.controller is not None:
            yield Key(job.metadata.namespace, job.metadata.controller.name)

    return Watches(BuildPod, keys)


# A reconcile reads once, plans (`dynamo_legacy.build.plan`), acts, and reports. Only
# the step PROBE sends a request outside the cluster; its result goes into the next plan and the
# status.
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
        applied = self.reporter.applying(request)
        if problems := request_problems(request, self.settings):
            text = fitted([str(problem) for problem in problems], MESSAGE_LIMIT)
            return await self._report(request, refused(Reason.VALIDATION_FAILED, text), applied)
        try:
            image = source.built_image(request, self.legacy)
        except ValueError as error:
            plan = refused(Reason.VALIDATION_FAILED, f"spec: {error}")
            return await self._report(request, plan, applied)
        snapshot = read_request(request, self.cache, self.legacy)
        facts = BuildFacts(image.name, snapshot.jobs, snapshot.pods, snapshot.nim)
        plan = plan_build(request, facts)
        if plan.step is Next.PROBE:
            answer = await self.probe.asked(image, self.legacy)
            plan = plan_build(request, replace(facts, probe=answer))
        for job in plan.stale:
            if job.metadata.deletion_timestamp is None:
                await self.reporter.writer.ensure_newest(request)
                await self.reporter.writer.delete(job)
        plan = await self._act(request, plan, image, snapshot, applied)
        return await self._report(request, plan, applied)

    async def _act(
        self,
        request: DynamoNimRequest,
        plan: BuildPlan,
        image: source.BuiltImage,
        snapshot: RequestSnapshot,
        applied: Applied,
    ) -> BuildPlan:
        namespace, logins = request.metadata.namespace, list[Object]()
        if image.secret and not request.spec.docker_config_json_secret_name:
            logins.append(source.registry_secret(namespace, self.legacy))
        if plan.step is Next.RECORD:
            nim = dynamo_nim(request, image.name, image.secret)
            desired: list[DesiredObjects] = [_shared(logins), *await self._config(request, snapshot)]
            await self.applier.apply(request, *desired, Controlled([nim], (DynamoNim,)), applied=applied)
            return plan
        if plan.step is not Next.BUILD:
            # A build that has failed needs the token of the store no longer.
            ended = [_shared(logins)] if plan.step is Next.NOTHING else []
            config = await self._config(request, snapshot)
            await self.applier.apply(request, *ended, *config, applied=applied)
            return plan
        if snapshot.builder_error:
            return refused(Reason.VALIDATION_FAILED, snapshot.builder_error)
        try:
            fetch = source.fetch_of(request, self.legacy)
            build = Build(image, fetch, self.legacy, snapshot.builder, snapshot.account)
            job = build_job(request, build)
        except ValueError as error:
            is_source = isinstance(error, source.SourceUnavailable)
            reason = Reason.SOURCE_UNAVAILABLE if is_source else Reason.VALIDATION_FAILED
            return refused(reason, str(error))
        tokens = [source.token_secret(namespace, self.legacy)] if fetch.is_store else []
        await self.applier.apply(request, _shared([*logins, *tokens]), applied=applied)
        if not applied.obstructions:
            await self.applier.apply(request, CreateOnly([job], (BuildJob,)), applied=applied)
        return plan

    async def _config(self, request: DynamoNimRequest, snapshot: RequestSnapshot) -> list[CreateOnly]:
        """The configuration of the graph that its build found, until a ConfigMap has one."""
        job = next((job for job in snapshot.jobs if job.metadata.name == job_name(request)), None)
        if job is None or self.cache.get(GraphConfigMap, request.key):
            return []
        configs = {pod.key: fetched_config(pod) for pod in snapshot.pods if controls(job, pod)}
        ended = [key for key, text in configs.items() if text is not None]
        if not any(configs.values()) or len(ended) > _MOST_PODS:
            return []
        # The cache has no specs.
        client = self.reporter.client
        try:
            live = await client.get(JobInFull, job.key, _MOST_BYTES)
            reports = [config_report(live, await client.get(JobPodInFull, key, _MOST_BYTES)) for key in ended]
        except (NotFound, TooLarge):
            return []
        is_complete = any((it.type, it.status) == ("Complete", "True") for it in job.status.conditions)
        if not (text := believed_config(reports, is_complete=is_complete)):
            return []
        config_map = graph_config_map(request.key, request.metadata.name, text)
        return [CreateOnly([config_map], (GraphConfigMap,))]

    async def _report(self, request: DynamoNimRequest, plan: BuildPlan, applied: Applied) -> Result:
        status = request_status(request, plan, applied.blocked)
        return await self.reporter.finish(request, status, applied, plan.requeue_after_seconds)


def _shared(secrets: list[Object]) -> Shared:
    return Shared(secrets, (SharedSecret,), source.SHARED_MARKER)
