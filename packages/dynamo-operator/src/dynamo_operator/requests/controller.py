"""The controller of DynamoGraphDeploymentRequest: profiles a model, and creates the resulting graph.

One reconcile runs one action and writes one status, which triggers the next. The process may be killed
between any two requests to the API server, and the next one must reach the same result: see
`dynamo_graphs.plan.request`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.request_record import (
    Record,
    accepted_spec,
    annotation,
    recorded,
    with_graph,
    with_job,
    with_results,
    with_spec,
)
from dynamo_graphs.plan.request import (
    Action,
    Destination,
    RequestFacts,
    RequestReason,
    end_of,
    next_step,
    stage,
)
from dynamo_graphs.plan.request_digest import require_confirmed
from dynamo_graphs.plan.request_graph import (
    new_names,
    read_output,
    renamed_config_maps,
    target,
    with_new_names,
)
from dynamo_graphs.plan.request_output import (
    BadOutput,
    ProfilingProgress,
    ProfilingResult,
    progress,
    require_small,
)
from dynamo_graphs.render.profiling import placement
from dynamo_graphs.render.profiling_config import uses_ai_configurator
from dynamo_graphs.status import request as status
from dynamo_graphs.status import requested_graph
from dynamo_graphs.status.profiling_job import failure, left_over, obstacle, unread
from dynamo_graphs.status.request import RequestReport
from dynamo_operator.reconcile.patches import patch_metadata, without_finalizer
from dynamo_operator.reconcile.preflight import report_unreadable
from dynamo_operator.reconcile.report import (
    CONFLICT_RETRY_SECONDS,
    REJECTED_RETRY_SECONDS,
    Reporter,
)
from dynamo_operator.requests.actions import ActionBlocked, RequestActions
from dynamo_operator.requests.gpu_discovery_rbac import may_search
from dynamo_operator.requests.read import RequestReader, request_watches, taken_graph, target_of
from kube_runtime.apply.ownership import shared_watch
from kube_runtime.apply.result import name_conflict
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.worker_pool import WorkEnded
from kube_runtime.errors import Invalid, TooLarge
from kube_runtime.kind import Key, Object
from kube_runtime.times import utc_now
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ServiceAccount
from kube_runtime.types.meta import Condition, Resource
from kube_runtime.types.rbac import RoleBinding


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
        return await self.reader.offload.reconciled(request, self._reconcile, self._too_expensive)

    async def _too_expensive(self, request: DynamoGraphDeploymentRequest, text: str) -> None:
        await self._report(request, status.too_expensive(request, text))

    async def _reconcile(self, request: DynamoGraphDeploymentRequest) -> Result:
        next_stage = stage(request)
        if accepted_spec(request).enable_gpu_discovery and not may_search(request):
            await self.actions.gpu_rbac.withdraw()
        try:
            facts = await self.reader.at(request, next_stage)
        except TooLarge as error:  # anyone may change what the request names
            await self._too_expensive(request, f"Cannot read what the request needs: {error}")
            return Result(REJECTED_RETRY_SECONDS)
        return await self._do(request, next_step(request, facts), facts)

    async def _do(  # noqa: C901, PLR0911, PLR0912  one line for each action
        self, request: DynamoGraphDeploymentRequest, act: Action, facts: RequestFacts
    ) -> Result:
        match act:
            case Action.NOTHING:
                return await self._rest(request)
            case Action.REJECT:
                return await self._blocked(request, status.refused(request, facts.problems))
            case Action.ACCEPT if request.spec is not None:
                report = status.accepted(request, request.spec)
                return await self._report(request, report, record=with_spec)
            case Action.DELETE_OLD_JOB if facts.job is not None:
                await self.actions.clear(request, facts.job)
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
                report = requested_graph.not_created(request, taken, text)
                return await self._blocked(request, report)
            case Action.SYNC_STATUS if facts.graph is not None:
                return await self._sync_status(request, facts.graph, facts.destination)
            case Action.MARK_DELETED:
                return await self._report(request, requested_graph.lost(request))
            case Action.FINISH:
                return await self._report(request, status.settled(request))
            case _:
                raise AssertionError(f"{act} without its object")

    async def _rest(self, request: DynamoGraphDeploymentRequest) -> Result:
        """Report once that a change of the spec comes too late."""
        if status.has_to_be_restated(request):
            await self._report(request, status.restated(request))
        return DONE

    async def _start(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        spec = accepted_spec(request)
        try:
            job = await self.actions.start(request, spec, facts)
        except ActionBlocked as error:
            reason = (
                RequestReason.NAME_CONFLICT if error.is_taken else RequestReason.JOB_CREATION_FAILED
            )
            return await self._blocked(request, status.not_started(request, reason, str(error)))
        text = f"Created Job {job.metadata.name}"
        self.reporter.recorder.event(request, reason="CreateJob", message=text)
        return await self._begin(request, job)

    async def _begin(self, request: DynamoGraphDeploymentRequest, job: Job) -> Result:
        is_offline = uses_ai_configurator(accepted_spec(request))
        report = status.begun(request, utc_now(), is_offline=is_offline)
        return await self._report(
            request, report, record=lambda stored: with_job(stored, job.metadata.uid)
        )

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
        await self.actions.clear_temporary(facts.temporary)
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

    async def _collect_results(
        self, request: DynamoGraphDeploymentRequest, facts: RequestFacts
    ) -> Result:
        job_progress = _job_progress(facts)
        try:
            return await self._record(request, facts, job_progress)
        except (BadOutput, WorkEnded) as error:
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
        data, offload = facts.output.data, self.reader.offload
        require_confirmed(request, spec, *facts.witnesses, data)
        size = sum(map(len, data.values()))
        placed = placement(spec.profiling_config)
        output = await offload.one(
            request, read_output, request, spec, data, placed, more_bytes=size
        )
        destination = await self.reader.destination(
            request, graph_key.namespace, output.config_maps
        )
        if renamed := new_names(request, output.config_maps, destination.config_maps):
            output = await offload.one(request, with_new_names, output, renamed, more_bytes=size)
        require_small(output.config_maps)
        warnings = [("DocumentsIgnored", warning) for warning in output.warnings]
        if not spec.auto_apply:
            destination = await self.reader.destination(
                request, graph_key.namespace, output.config_maps
            )
            problems = await self.actions.config_maps(
                request, output.config_maps, destination, None
            )
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
        result = await self.reader.offload.one(request, with_new_names, result, renamed)
        report = requested_graph.renamed(request, result)
        return await self._report(request, report, record=with_results)

    async def _create(
        self, request: DynamoGraphDeploymentRequest, destination: Destination
    ) -> Result:
        try:
            graph = await self.actions.create(request, accepted_spec(request), destination)
        except ActionBlocked as error:
            reason = RequestReason.DEPLOYMENT_CREATION_FAILED
            report = requested_graph.not_created(request, reason, str(error))
            return await self._blocked(request, report)
        return await self._created(request, graph, destination)

    async def _created(
        self,
        request: DynamoGraphDeploymentRequest,
        graph: DynamoGraphDeployment,
        destination: Destination,
    ) -> Result:
        kept = request.status.additional_resources
        problems = await self.actions.config_maps(request, kept, destination, graph)
        report = requested_graph.created(request, graph.key, problems)
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
        report = requested_graph.mirrored(request, graph)
        if wait := self.reporter.limit.wait(request, report.status):
            return Result(wait)
        return await self._report(request, report, self.reporter.limit)

    async def _blocked(
        self, request: DynamoGraphDeploymentRequest, report: RequestReport
    ) -> Result:
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
