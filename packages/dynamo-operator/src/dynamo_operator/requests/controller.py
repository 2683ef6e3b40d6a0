"""Reconciler of DynamoGraphDeploymentRequest: profiles a model, and creates the resulting graph.

One reconcile does one action and writes one status, which triggers the next. The process may be killed
between any two requests, and the next one must reach the same end: see `dynamo_graphs.plan.request`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.plan.request import (
    Action,
    RequestFacts,
    RequestReason,
    accepted_spec,
    end_of,
    next_step,
    stage,
)
from dynamo_graphs.plan.request_digest import is_signed
from dynamo_graphs.plan.request_graph import target
from dynamo_graphs.plan.request_output import (
    BadOutput,
    ProfilingProgress,
    progress,
    require_small,
)
from dynamo_graphs.plan.request_result import read_output, with_new_names
from dynamo_graphs.render.profiling import placement
from dynamo_graphs.render.profiling_config import uses_ai_configurator
from dynamo_graphs.status import request as status
from dynamo_graphs.status import requested_graph
from dynamo_graphs.status.request_conditions import RequestReport
from dynamo_graphs.status.request_failure import failure, left_over, obstacle, unread
from dynamo_operator.reconcile.finalizer import without_finalizer
from dynamo_operator.reconcile.report import CONFLICT_RETRY_SECONDS, REJECTED_RETRY_SECONDS
from dynamo_operator.reconcile.unreadable import report_unreadable
from dynamo_operator.requests.actions import ActionBlocked, RequestActions
from dynamo_operator.requests.gpu_discovery_rbac import may_search
from dynamo_operator.requests.read import RequestReader, request_watches, taken_graph, target_of
from kube_runtime.apply.ownership import shared_watch
from kube_runtime.apply.result import name_conflict
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.controller.worker import WorkEnded
from kube_runtime.errors import Invalid
from kube_runtime.kind import Key
from kube_runtime.times import utc_now
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ServiceAccount
from kube_runtime.types.meta import Condition, Resource
from kube_runtime.types.rbac import RoleBinding

_UNSIGNED = (
    "no pod of the profiling Job that runs the Job's template reports the digests of the results, which are "
    "required to create objects in namespace {}"
)


@dataclass(frozen=True, slots=True)
class RequestController:
    """Reconciles a DynamoGraphDeploymentRequest."""

    cache: Cache
    acts: RequestActions
    recorder: Recorder
    pace: StatusRateLimit

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeploymentRequest
    owns: ClassVar[tuple[type[Resource], ...]] = (Job,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds that are read: profiling pods, their output, the graph, the shared ServiceAccount."""
        shared = (
            shared_watch(each, self.reconciles.KIND) for each in (ServiceAccount, RoleBinding)
        )
        return (*request_watches(self.cache), *shared)

    @property
    def reader(self) -> RequestReader:
        """The reader of the inputs."""
        return self.acts.facts

    async def reconcile(self, key: Key) -> Result:
        """Run the next action of this request, and report it."""
        if error := self.cache.broken(DynamoGraphDeploymentRequest, key):
            return await report_unreadable(
                *(DynamoGraphDeploymentRequest, key, error),
                client=self.reader.client,
                writer=self.acts.writer,
                recorder=self.recorder,
            )
        request = self.cache.get(DynamoGraphDeploymentRequest, key)
        if request is None:
            await self.acts.nodes.withdraw()
            return DONE
        request = await without_finalizer(request, self.acts.writer)
        if request.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        if is_paused(request):
            await self._tell(request, status.paused(request, "the request is paused"))
            return DONE
        if request.spec is None:
            await self._tell(request, status.refused(request, ("spec is required",)))
            return DONE
        return await self.reader.heavy.reconciled(request, self._reconcile, self._too_expensive)

    async def _too_expensive(self, request: DynamoGraphDeploymentRequest, text: str) -> None:
        await self._tell(request, status.too_expensive(request, text))

    async def _reconcile(self, request: DynamoGraphDeploymentRequest) -> Result:
        at = stage(request)
        if accepted_spec(request).enable_gpu_discovery and not may_search(request):
            await self.acts.nodes.withdraw()
        facts = await self.reader.at(request, at)
        return await self._do(request, next_step(request, facts), facts)

    async def _do(  # noqa: C901, PLR0911, PLR0912  one line for each act
        self, request: DynamoGraphDeploymentRequest, act: Action, facts: RequestFacts
    ) -> Result:
        match act:
            case Action.REST:
                return await self._rest(request)
            case Action.REFUSE:
                await self._tell(request, status.refused(request, facts.problems))
                return Result(REJECTED_RETRY_SECONDS)
            case Action.ACCEPT:
                return await self._accept(request)
            case Action.CLEAR if facts.job is not None:
                await self.acts.clear(request, facts.job)
                return DONE
            case Action.WAIT:
                text = left_over(facts.job, facts.pods_left)
                return await self._tell(request, status.waiting(request, text))
            case Action.START:
                return await self._start(request)
            case Action.BEGIN:
                return await self._begin(request)
            case Action.FAIL_START if facts.job is not None:
                return await self._taken(request, facts.job)
            case Action.WATCH:
                return await self._watch(request, facts)
            case Action.FAIL if facts.job is not None:
                return await self._fail(request, facts, facts.job)
            case Action.VANISHED:
                return await self._vanished(request, facts)
            case Action.HARVEST:
                return await self._harvest(request, facts)
            case Action.CREATE:
                return await self._create(request)
            case Action.CONFLICT:
                text = taken_graph(target_of(request))
                await self._tell(
                    request, requested_graph.not_created(request, RequestReason.NAME_CONFLICT, text)
                )
                return Result(REJECTED_RETRY_SECONDS)
            case Action.MIRROR if facts.graph is not None:
                return await self._mirror(request, facts.graph)
            case Action.LOSE:
                return await self._tell(request, requested_graph.lost(request))
            case Action.SETTLE:
                return await self._tell(request, status.settled(request))
            case _:
                raise AssertionError(f"{act} without its object")

    async def _rest(self, request: DynamoGraphDeploymentRequest) -> Result:
        """Report once that a change of the spec comes too late."""
        if status.has_to_be_restated(request):
            await self._tell(request, status.restated(request))
        return DONE

    async def _accept(self, request: DynamoGraphDeploymentRequest) -> Result:
        spec = request.spec
        if spec is None:
            return DONE
        return await self._tell(request, status.accepted(request, spec))

    async def _start(self, request: DynamoGraphDeploymentRequest) -> Result:
        spec = accepted_spec(request)
        try:
            job = await self.acts.start(request, spec)
        except ActionBlocked as error:
            reason = (
                RequestReason.NAME_CONFLICT if error.is_taken else RequestReason.JOB_CREATION_FAILED
            )
            await self._tell(request, status.not_started(request, reason, str(error)))
            return Result(REJECTED_RETRY_SECONDS)
        text = f"Created Job {job.metadata.name}"
        self.recorder.event(request, reason="CreateJob", message=text)
        return await self._begin(request)

    async def _begin(self, request: DynamoGraphDeploymentRequest) -> Result:
        is_offline = uses_ai_configurator(accepted_spec(request))
        return await self._tell(request, status.begun(request, utc_now(), is_offline=is_offline))

    async def _taken(self, request: DynamoGraphDeploymentRequest, job: Job) -> Result:
        blocked = name_conflict(job, request)
        if blocked.passes_by_itself:
            await self._tell(request, status.waiting(request, blocked.message))
            return Result(CONFLICT_RETRY_SECONDS)
        told = status.not_started(request, RequestReason.NAME_CONFLICT, blocked.message)
        await self._tell(request, told)
        return Result(REJECTED_RETRY_SECONDS)

    async def _watch(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        text, again = obstacle(facts.pods, datetime.now(UTC))
        told = status.watched(request, _said(facts), text)
        if wait := self.pace.wait(request, told.status):
            return Result(wait)
        await self._tell(request, told, self.pace)
        return Result(again) if again else DONE

    async def _fail(
        self, request: DynamoGraphDeploymentRequest, facts: RequestFacts, job: Job
    ) -> Result:
        await self.acts.clear_temporary(facts.temporary)
        end, said = end_of(job) or Condition("Failed", "True"), _said(facts)
        text = failure(end, facts.pods, said)
        return await self._tell(request, status.profiling_failed(request, text, said, utc_now()))

    async def _vanished(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        await self.acts.clear_temporary(facts.temporary)
        name = request.status.profiling_job_name or "of the request"
        text = (
            f"profiling job {name} was deleted before the operator read its results. Create a new "
            "DGDR to profile again"
        )
        told = status.profiling_failed(request, text, _said(facts), utc_now())
        return await self._tell(request, told)

    async def _harvest(self, request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Result:
        said = _said(facts)
        try:
            return await self._record(request, facts, said)
        except (BadOutput, WorkEnded) as error:
            text = str(error)
        except Invalid as error:
            text = f"the API server does not store the profiling results: {error.message}"
        told = status.not_generated(request, unread(text, said), said, utc_now())
        return await self._tell(request, told)

    async def _record(
        self, request: DynamoGraphDeploymentRequest, facts: RequestFacts, said: ProfilingProgress
    ) -> Result:
        """Record the results in the status before they are used."""
        spec, name = accepted_spec(request), status.output_name(request)
        if facts.output is None:
            text = f"output ConfigMap {name} not found - profiling may not have completed yet"
            raise BadOutput(text)
        at = target(request, spec)
        data, heavy = facts.output.data, self.reader.heavy
        is_signed_here = is_signed(
            *facts.witnesses, data
        )  # raises if another wrote them, wherever they lead
        if not is_signed_here and at.namespace != request.metadata.namespace:
            raise BadOutput(_UNSIGNED.format(at.namespace))
        size = sum(map(len, data.values()))
        placed = placement(spec.profiling_config)
        output = await heavy.one(request, read_output, request, spec, data, placed, more_bytes=size)
        renamed = await self.acts.taken_names(request, output.config_maps, at.namespace)
        if renamed:
            output = await heavy.one(request, with_new_names, output, renamed, more_bytes=size)
        require_small(output.config_maps)
        warnings = [("DocumentsIgnored", each) for each in output.warnings]
        if not spec.auto_apply:
            problems = await self.acts.config_maps(request, output.config_maps, at.namespace, None)
            warnings += [("ConfigMapCreationFailed", each) for each in problems]
        told = status.generated(
            *(request, output, said),
            target=at if spec.auto_apply else None,
            warnings=tuple(warnings),
            now=utc_now(),
        )
        return await self._tell(request, told)

    async def _create(self, request: DynamoGraphDeploymentRequest) -> Result:
        at = target_of(request)
        try:
            graph = await self.acts.create(request, accepted_spec(request), at)
        except ActionBlocked as error:
            reason = RequestReason.DEPLOYMENT_CREATION_FAILED
            await self._tell(request, requested_graph.not_created(request, reason, str(error)))
            return Result(REJECTED_RETRY_SECONDS)
        return await self._created(request, graph)

    async def _created(
        self, request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment
    ) -> Result:
        kept = request.status.additional_resources
        problems = await self.acts.config_maps(request, kept, graph.metadata.namespace, graph)
        return await self._tell(request, requested_graph.created(request, graph.key, problems))

    async def _mirror(
        self, request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment
    ) -> Result:
        deployment = request.status.deployment
        if deployment is None or not deployment.created:
            return await self._created(
                request, graph
            )  # created by a process that could not record it
        told = requested_graph.mirrored(request, graph)
        if wait := self.pace.wait(request, told.status):
            return Result(wait)
        return await self._tell(request, told, self.pace)

    async def _tell(
        self,
        request: DynamoGraphDeploymentRequest,
        told: RequestReport,
        pace: StatusRateLimit | None = None,
    ) -> Result:
        """Write the status, then queue the events; neither if the status is unchanged."""
        late = status.change_rejected(request)
        stored = await patch_status(self.acts.writer, request, told.status, pace=pace)
        if stored is not request:
            for reason, text, is_warning in (*told.events, *late):
                self.recorder.event(request, reason=reason, message=text, warning=is_warning)
        return DONE


def _said(facts: RequestFacts) -> ProfilingProgress:
    return progress(facts.output.data) if facts.output is not None else ProfilingProgress()
