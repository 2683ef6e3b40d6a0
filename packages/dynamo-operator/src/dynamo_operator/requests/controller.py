"""The controller of DynamoGraphDeploymentRequest: profiles a model, and creates the resulting graph.

One reconcile runs one action and writes one status, which triggers the next. The process may be killed
between any two requests to the API server, and the next one must reach the same result: see
`dynamo_operator.requests.plan`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import is_paused
from dynamo_operator.requests import status
from dynamo_operator.requests.api import (
    ConfigMapReference,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    Output,
    Record,
    accepted_spec,
    annotation,
    recorded,
    with_graph,
    with_job,
    with_results,
    with_spec,
)
from dynamo_operator.requests.plan import (
    Action,
    Destination,
    RequestFacts,
    RequestReason,
    end_of,
    next_step,
    require_confirmed,
    stage,
)
from dynamo_operator.requests.read import (
    GpuDiscoveryRbac,
    RequestReader,
    job_key,
    may_search,
    request_watches,
    taken_graph,
    target_of,
)
from dynamo_operator.requests.render import (
    BASE_FILE,
    account_objects,
    missing_settings,
    placement,
    profiling_job,
    uses_ai_configurator,
)
from dynamo_operator.requests.results import (
    BadOutput,
    ProfilingProgress,
    ProfilingResult,
    base_config_map,
    completed_base,
    config_map,
    deployed,
    is_own_config_map,
    named_config_maps,
    new_names,
    progress,
    read_output,
    renamed_config_maps,
    require_small,
    target,
    with_new_names,
)
from dynamo_operator.requests.status import RequestReport, failure, left_over, obstacle, unread
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import (
    CONFLICT_RETRY_SECONDS,
    REJECTED_RETRY_SECONDS,
    Reporter,
    parsed,
    patch_metadata,
    report_unreadable,
    without_finalizer,
)
from kube_runtime.apply.applier import Applier, Shared, controller_reference, shared_watch
from kube_runtime.apply.result import Obstructed, name_conflict
from kube_runtime.apply.status import (
    StatusRateLimit,
    Target,
    WriteSuppression,
    digest_of,
    patch_status,
)
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import ABSENT
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import Invalid, NotFound, Refused, TooLarge
from kube_runtime.times import utc_now
from kube_runtime.types.kinds import Job, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Condition, Key, Object, Resource


# Names may be taken. An existing object is ours by the uid on it, or stays unchanged. Every action
# is idempotent: another process may repeat it.
class ActionBlocked(Exception):
    """The action cannot run now; the message has the cause. `is_taken`: another object has the name."""

    def __init__(self, text: str, *, is_taken: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken


@dataclass(frozen=True, slots=True)
class RequestActions:
    """Runs the actions of requests."""

    writer: Writer
    reader: RequestReader
    applier: Applier
    settings: RenderSettings
    gpu_rbac: GpuDiscoveryRbac
    suppression: WriteSuppression = field(default_factory=WriteSuppression)

    async def start(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        facts: RequestFacts,
    ) -> Job:
        """Create the Job. First delete the results of an earlier one, which would pass for its own.

        Raises:
            ActionBlocked: it cannot be created.
            OperatorError: the API server could not be reached or failed.
        """
        if missing := missing_settings(spec, self.settings):
            raise ActionBlocked(missing)
        if (stale := facts.output) is not None:
            await self.writer.delete(stale)
        await self._ensure_account(request, spec)
        base = await self._base(request, spec, facts.config_maps)
        desired = profiling_job(request, spec, self.settings, base)
        owners = {"ownerReferences": [controller_reference(request)]}
        body = {**desired, "metadata": desired["metadata"] | owners}
        with self._creating(request, Job.KIND.name, job_key(request), body):
            return await self.writer.apply(Job, body, force=False, uid=ABSENT)

    async def config_maps(
        self,
        request: DynamoGraphDeploymentRequest,
        manifests: Iterable[Object],
        destination: Destination,
        graph: DynamoGraphDeployment | None,
    ) -> tuple[str, ...]:
        """Create the ConfigMaps that profiling found, and return the errors.

        The graph, which mounts them, owns them. With `graph` None the user creates it, and they have no
        owner.

        Raises:
            OperatorError: the API server could not be reached or failed.
        """
        problems: list[str] = []
        desired = tuple(named_config_maps(manifests))
        if desired and destination.refusal:
            return (f"Failed to create ConfigMaps from profiling output: {destination.refusal}",)
        for manifest in desired:
            name = manifest["metadata"]["name"]
            try:
                body = config_map(request, manifest, destination.namespace)
                if graph is not None:
                    body["metadata"]["ownerReferences"] = [_owner(graph)]
                await self._config_map(request, body, destination.config_maps)
            except (Refused, BadOutput, ActionBlocked) as error:
                cause = error.message if isinstance(error, Refused) else str(error)
                text = f"failed to create ConfigMap {name}: {cause}"
                problems.append(f"Failed to create ConfigMaps from profiling output: {text}")
        return tuple(problems)

    async def create(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        destination: Destination,
    ) -> DynamoGraphDeployment:
        """Create the graph.

        Raises:
            ActionBlocked: it is refused.
            Conflict: it exists by now; the caller retries.
            OperatorError: the API server could not be reached or failed.
        """
        if destination.refusal:
            raise ActionBlocked(destination.refusal)
        graph_key = Key(destination.namespace, target_of(request).name)
        body = deployed(request, spec, graph_key)
        with self._creating(request, DynamoGraphDeployment.KIND.name, graph_key, body):
            return await self.writer.create(DynamoGraphDeployment, body)

    @contextmanager
    def _creating(
        self, request: DynamoGraphDeploymentRequest, kind: str, key: Key, body: Object
    ) -> Iterator[None]:
        """Do not repeat what was refused; a refusal, or a missing namespace, blocks the action."""
        target = Target(request.metadata.uid, kind, key)
        try:
            with self.suppression.suppressing_repeats(target, digest_of(body), ""):
                yield
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error
        except NotFound as error:
            raise ActionBlocked(error.message) from error

    async def _base(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        present: Mapping[str, Output],
    ) -> ConfigMapReference | None:
        """Write the completed base graph to a ConfigMap; None if the user's ConfigMap, or none, is used."""
        profiling = spec.profiling_config
        reference = profiling.config_map_ref
        live = present.get(reference.name) if reference else None
        text = live.data.get(reference.key) if live is not None and reference is not None else None
        if not text:
            return None
        completed = await parsed(len(text), completed_base, text, spec, placement(profiling))
        if completed is None:
            return None
        body = base_config_map(request, BASE_FILE, completed)
        completed_reference = ConfigMapReference(body["metadata"]["name"], BASE_FILE)
        body["metadata"]["ownerReferences"] = [controller_reference(request)]
        try:
            await self._config_map(request, body, present)
        except ActionBlocked as error:
            text = f"ConfigMap {completed_reference.name}: {error}: rename or delete it"
            raise ActionBlocked(text, is_taken=True) from error
        except Refused as error:
            raise ActionBlocked(f"ConfigMap {completed_reference.name}: {error.message}") from error
        return completed_reference

    async def _ensure_account(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> None:
        """Ensure the Job's ServiceAccount; the installation of a restricted operator provides it instead."""
        desired = account_objects(request.metadata.namespace, spec, self.settings)
        if not desired:
            return
        types: tuple[type[Resource], ...] = (ServiceAccount, RoleBinding)
        applied = await self.applier.apply(request, Shared(desired, types, labels.SHARED))
        if applied.failure is not None:
            raise applied.failure
        causes = [*(blocked.message for blocked in applied.blocked), *applied.contested]
        if causes:
            raise ActionBlocked(f"failed to ensure profiling job RBAC: {'; '.join(causes)}")
        reads_nodes = self.gpu_rbac.name and spec.enable_gpu_discovery
        if reads_nodes and (problem := await self.gpu_rbac.admit(request)):
            raise ActionBlocked(problem)

    async def _config_map(
        self, request: DynamoGraphDeploymentRequest, body: Object, present: Mapping[str, Output]
    ) -> None:
        live = present.get(body["metadata"]["name"])
        if live is None:
            await self.writer.apply(Output, body, force=False, uid=ABSENT)
        elif is_own_config_map(request, live):
            await self.writer.apply(Output, body, force=True, uid=live.metadata.uid)
        else:
            raise ActionBlocked("it exists and has another owner; the operator leaves it alone")


def _owner(graph: DynamoGraphDeployment) -> Object:
    return {
        "apiVersion": graph.KIND.api_version,
        "kind": graph.KIND.name,
        "name": graph.metadata.name,
        "uid": graph.metadata.uid,
    }


@dataclass(frozen=True, slots=True)
class RequestController:
    """Reconciles a DynamoGraphDeploymentRequest."""

    cache: Cache
    actions: RequestActions
    reporter: Reporter

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeploymentRequest
    owns: ClassVar[tuple[type[Resource], ...]] = (Job,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds that are read: profiling pods, their output, the graph, the shared ServiceAccount."""
        kind = self.reconciles.KIND
        shared = (shared_watch(ServiceAccount, kind), shared_watch(RoleBinding, kind))
        return (*request_watches(self.cache), *shared)

    @property
    def reader(self) -> RequestReader:
        """The reader of the inputs."""
        return self.actions.reader

    async def reconcile(self, key: Key) -> Result:
        """Run the next action of this request, and report it."""
        if error := self.cache.broken(DynamoGraphDeploymentRequest, key):
            return await report_unreadable(DynamoGraphDeploymentRequest, key, error, self.reporter)
        request = self.cache.get(DynamoGraphDeploymentRequest, key)
        if request is None:
            await self.actions.gpu_rbac.withdraw()
            return DONE
        request = await without_finalizer(request, self.reporter.writer)
        if request.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        if is_paused(request):
            await self._report(request, status.paused(request, "the request is paused"))
            return DONE
        if request.spec is None:
            await self._report(request, status.refused(request, ("spec is required",)))
            return DONE
        next_stage = stage(request)
        if accepted_spec(request).enable_gpu_discovery and not may_search(request):
            await self.actions.gpu_rbac.withdraw()
        try:
            facts = await self.reader.at(request, next_stage)
        except TooLarge as error:  # anyone may change what the request names
            text = f"Cannot read what the request needs: {error}"
            await self._report(request, status.too_large(request, text))
            return Result(REJECTED_RETRY_SECONDS)
        return await self._do(request, next_step(request, facts), facts)

    async def _do(  # noqa: C901, PLR0911, PLR0912  one line for each action
        self, request: DynamoGraphDeploymentRequest, act: Action, facts: RequestFacts
    ) -> Result:
        match act:
            case Action.NOTHING:
                if status.has_to_be_restated(request):  # a change of the spec comes too late
                    await self._report(request, status.restated(request))
                return DONE
            case Action.REJECT:
                return await self._blocked(request, status.refused(request, facts.problems))
            case Action.ACCEPT if request.spec is not None:
                report = status.accepted(request, request.spec)
                return await self._report(request, report, record=with_spec)
            case Action.DELETE_OLD_JOB if facts.job is not None:
                await self.actions.writer.ensure_newest(request)
                await self.actions.writer.delete(facts.job)  # which requeues the request
                return DONE
            case Action.WAIT:
                text = left_over(facts.job, facts.pods_left)
                return await self._report(request, status.waiting(request, text))
            case Action.START:
                return await self._start(request, facts)
            case Action.OUTPUT_TAKEN:
                return await self._blocked(request, status.output_taken(request))
            case Action.RECORD_START if facts.job is not None:
                return await self._begin(request, facts.job)
            case Action.JOB_NAME_TAKEN if facts.job is not None:
                return await self._job_name_taken(request, facts.job)
            case Action.REPORT_PROGRESS:
                return await self._watch(request, facts)
            case Action.FAIL if facts.job is not None:
                return await self._fail(request, facts, facts.job)
            case Action.JOB_LOST:
                return await self._fail(request, facts, None)
            case Action.COLLECT_RESULTS:
                return await self._collect_results(request, facts)
            case Action.RENAME if request.status.generated_deployment is not None:
                return await self._rename(request, request.status.generated_deployment, facts)
            case Action.CREATE:
                return await self._create(request, facts.destination)
            case Action.GRAPH_NAME_TAKEN:
                text, taken = taken_graph(target_of(request)), RequestReason.NAME_CONFLICT
                report = status.not_created(request, taken, text)
                return await self._blocked(request, report)
            case Action.SYNC_STATUS if facts.graph is not None:
                return await self._sync_status(request, facts.graph, facts.destination)
            case Action.MARK_DELETED:
                return await self._report(request, status.lost(request))
            case Action.FINISH:
                return await self._report(request, status.settled(request))
            case _:
                raise AssertionError(f"{act} without its object")

    async def _start(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        spec = accepted_spec(request)
        try:
            job = await self.actions.start(request, spec, facts)
        except ActionBlocked as error:
            reason = RequestReason.NAME_CONFLICT if error.is_taken else RequestReason.JOB_CREATION_FAILED
            return await self._blocked(request, status.not_started(request, reason, str(error)))
        text = f"Created Job {job.metadata.name}"
        self.reporter.recorder.event(request, reason="CreateJob", message=text)
        return await self._begin(request, job)

    async def _begin(self, request: DynamoGraphDeploymentRequest, job: Job) -> Result:
        is_offline = uses_ai_configurator(accepted_spec(request))
        report = status.begun(request, utc_now(), is_offline=is_offline)
        return await self._report(request, report, record=lambda stored: with_job(stored, job.metadata.uid))

    async def _job_name_taken(self, request: DynamoGraphDeploymentRequest, job: Job) -> Result:
        blocked = name_conflict(job, request)
        if blocked.passes_by_itself:
            await self._report(request, status.waiting(request, blocked.message))
            return Result(CONFLICT_RETRY_SECONDS)
        report = status.not_started(request, RequestReason.NAME_CONFLICT, blocked.message)
        return await self._blocked(request, report)

    async def _watch(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        text, requeue_after = obstacle(facts.pods, datetime.now(UTC))
        report = status.watched(request, _job_progress(facts), text)
        if wait := self.reporter.limit.wait(request, report.status):
            return Result(wait)
        await self._report(request, report, self.reporter.limit)
        return Result(requeue_after) if requeue_after else DONE

    async def _fail(
        self, request: DynamoGraphDeploymentRequest, facts: RequestFacts, job: Job | None
    ) -> Result:
        """Report that profiling failed. `job` None: it was deleted."""
        for graph in facts.temporary:  # their pods hold GPUs
            if not graph.metadata.deletion_timestamp:
                await self.actions.writer.delete(graph)
        job_progress = _job_progress(facts)
        if job is None:
            name = request.status.profiling_job_name or "of the request"
            text = (
                f"profiling job {name} was deleted before the operator read its results. Create a "
                "new DGDR to profile again"
            )
        else:
            end = end_of(job) or Condition("Failed", "True")
            text = failure(end, facts.pods, job_progress)
        report = status.profiling_failed(request, text, job_progress, utc_now())
        return await self._report(request, report)

    async def _collect_results(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        job_progress = _job_progress(facts)
        try:
            return await self._record(request, facts, job_progress)
        except BadOutput as error:
            text = str(error)
        except Invalid as error:
            text = f"the API server does not store the profiling results: {error.message}"
        report = status.not_generated(request, unread(text, job_progress), job_progress, utc_now())
        return await self._report(request, report)

    async def _record(
        self,
        request: DynamoGraphDeploymentRequest,
        facts: RequestFacts,
        job_progress: ProfilingProgress,
    ) -> Result:
        """Record the results in the status before they are used."""
        spec, name = accepted_spec(request), status.output_name(request)
        if facts.output is None:
            text = f"output ConfigMap {name} not found - profiling may not have completed yet"
            raise BadOutput(text)
        graph_key = target(request, spec)
        data = facts.output.data
        require_confirmed(request, spec, *facts.witnesses, data)
        placed = placement(spec.profiling_config)
        size = sum(map(len, data.values()))
        output = await parsed(size, read_output, request, spec, data, placed)
        destination = await self.reader.destination(request, graph_key.namespace, output.config_maps)
        if renamed := new_names(request, output.config_maps, destination.config_maps):
            output = with_new_names(output, renamed)
        require_small(output.config_maps)
        warnings = [("DocumentsIgnored", warning) for warning in output.warnings]
        if not spec.auto_apply:
            destination = await self.reader.destination(request, graph_key.namespace, output.config_maps)
            problems = await self.actions.config_maps(request, output.config_maps, destination, None)
            warnings += [("ConfigMapCreationFailed", problem) for problem in problems]
        report = status.generated(
            request,
            output,
            job_progress,
            target=graph_key if spec.auto_apply else None,
            warnings=tuple(warnings),
            now=utc_now(),
        )
        return await self._report(request, report, record=with_results)

    async def _rename(
        self, request: DynamoGraphDeploymentRequest, graph: Object, facts: RequestFacts
    ) -> Result:
        """Record new names for ConfigMaps before the graph that mounts them is created."""
        result = ProfilingResult(graph, request.status.additional_resources)
        renamed = renamed_config_maps(request, facts.destination.config_maps)
        result = with_new_names(result, renamed)
        report = status.renamed(request, result)
        return await self._report(request, report, record=with_results)

    async def _create(self, request: DynamoGraphDeploymentRequest, destination: Destination) -> Result:
        try:
            graph = await self.actions.create(request, accepted_spec(request), destination)
        except ActionBlocked as error:
            reason = RequestReason.DEPLOYMENT_CREATION_FAILED
            report = status.not_created(request, reason, str(error))
            return await self._blocked(request, report)
        return await self._created(request, graph, destination)

    async def _created(
        self,
        request: DynamoGraphDeploymentRequest,
        graph: DynamoGraphDeployment,
        destination: Destination,
    ) -> Result:
        config_maps = request.status.additional_resources
        problems = await self.actions.config_maps(request, config_maps, destination, graph)
        report = status.created(request, graph.key, problems)
        return await self._report(request, report, record=with_graph)

    async def _sync_status(
        self,
        request: DynamoGraphDeploymentRequest,
        graph: DynamoGraphDeployment,
        destination: Destination,
    ) -> Result:
        record = recorded(request)
        if record is not None and not record.created:
            # A process created it and was killed before it could record that.
            return await self._created(request, graph, destination)
        report = status.mirrored(request, graph)
        if wait := self.reporter.limit.wait(request, report.status):
            return Result(wait)
        return await self._report(request, report, self.reporter.limit)

    async def _blocked(self, request: DynamoGraphDeploymentRequest, report: RequestReport) -> Result:
        """Report a cause that others must remove, and retry later."""
        await self._report(request, report)
        return Result(REJECTED_RETRY_SECONDS)

    async def _report(
        self,
        request: DynamoGraphDeploymentRequest,
        report: RequestReport,
        pace: StatusRateLimit | None = None,
        *,
        record: Callable[[DynamoGraphDeploymentRequest], Record] | None = None,
    ) -> Result:
        """Write the status, queue the events, and extend the record; nothing of it if it is unchanged.

        `record` returns the record for the request with the stored status: the API server may have changed
        the form of values, and the record has their digest.
        """
        late = status.change_rejected(request)
        stored = await patch_status(self.reporter.writer, request, report.status, limit=pace)
        if stored is not request:
            for event in (*report.events, *late):
                self.reporter.recorder.event(
                    request, reason=event.reason, message=event.message, warning=event.is_warning
                )
        if record is not None and (desired := record(stored)) != recorded(stored):
            await patch_metadata(stored, {"annotations": annotation(desired)}, self.reporter.writer)
        return DONE


def _job_progress(facts: RequestFacts) -> ProfilingProgress:
    return progress(facts.output.data) if facts.output is not None else ProfilingProgress()
