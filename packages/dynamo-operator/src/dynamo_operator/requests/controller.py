"""The controller of DynamoGraphDeploymentRequest: profiles a model, and creates the resulting graph.

One reconcile carries out one decision (`decide.py`) and writes one status, which triggers the next. The
process may be killed between any two requests to the API server, and the next one must reach the same result.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from dynamo_operator import labels
from dynamo_operator.documents import parsed
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, decide, read, render, results, status
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.shared.patches import patch_metadata, without_finalizer
from dynamo_operator.shared.report import Reporter, report_unreadable
from kube_runtime.apply.applier import Applier, Shared, controller_reference, shared_watch
from kube_runtime.apply.result import Obstructed
from kube_runtime.apply.status import patch_status
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.client.client import ABSENT
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import Invalid, NotFound, Refused, TooLarge
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import Job, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Key, Object, Resource


# Names may be taken: an existing object that is not ours stays unchanged.
class ActionBlocked(Exception):
    """The action cannot run now; the message has the cause.

    `is_taken`: another object has the name. `is_invalid`: a retry will be refused too.
    """

    def __init__(self, text: str, *, is_taken: bool = False, is_invalid: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken
        self.is_invalid = is_invalid


@dataclass(frozen=True, slots=True)
class RequestController:
    """Reconciles a DynamoGraphDeploymentRequest."""

    reader: read.RequestReader
    applier: Applier
    gpu_rbac: read.GpuDiscoveryRbac
    reporter: Reporter
    suppression: WriteSuppression = field(default_factory=WriteSuppression)

    reconciles: ClassVar[type[Resource]] = Request
    owns: ClassVar[tuple[type[Resource], ...]] = (Job,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds that are read: profiling pods, their output, the graph, the shared ServiceAccount."""
        kind = self.reconciles.KIND
        shared = (shared_watch(ServiceAccount, kind), shared_watch(RoleBinding, kind))
        return (*read.request_watches(self.reader.cache), *shared)

    @property
    def writer(self) -> Writer:
        """The writer of all objects."""
        return self.reporter.writer

    async def reconcile(self, key: Key) -> Result:
        """Read what the stage of this request depends on, decide, carry that out, and report it."""
        if error := self.reader.cache.broken(Request, key):
            return await report_unreadable(Request, key, error, self.reporter)
        request = self.reader.cache.get(Request, key)
        if request is None:
            await self.gpu_rbac.withdraw()
            return DONE
        request = await without_finalizer(request, self.writer)
        if request.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        if request.metadata.is_true(labels.PAUSED):
            report = status.stopped(request, api.RequestReason.PAUSED, "the request is paused")
            return await self._report(request, decide.Decision(report))
        if request.spec is None:
            return await self._report(
                request, decide.Decision(status.refused(request, ("spec is required",)))
            )
        if api.accepted_spec(request).enable_gpu_discovery and not read.may_search(request):
            await self.gpu_rbac.withdraw()
        try:
            facts = await self.reader.at(request, decide.stage(request))
        except TooLarge as error:  # anyone may change what the request names
            text = f"Cannot read what the request needs: {error}"
            return await self._report(
                request, decide.held(status.stopped(request, api.RequestReason.TOO_LARGE, text))
            )
        decision = decide.decide(request, facts, datetime.now(UTC))
        return await self._carry_out(request, decision, facts)

    async def _carry_out(
        self, request: Request, decision: decide.Decision, facts: decide.RequestFacts
    ) -> Result:
        if decision.deletes and decision.report is None:
            await self.writer.ensure_newest(request)  # the decision depends on its present spec
        for gone in decision.deletes:
            await self.writer.delete(gone)
        failed = api.RequestConditionType.PROFILING, api.RequestReason.JOB_CREATION_FAILED
        try:
            match decision.work:
                case None:
                    pass
                case decide.Work.START:
                    decision = decide.begun(request, await self._job(request, facts), datetime.now(UTC))
                case decide.Work.COLLECT:
                    return await self._collect(request, facts)
                case decide.Work.CREATE:
                    failed = api.RequestConditionType.DEPLOYED, api.RequestReason.DEPLOYMENT_CREATION_FAILED
                    graph = facts.graph
                    if graph is None and api.accepted_spec(request).auto_apply:
                        graph = await self.create_graph(request, facts.destination)
                    config_maps = request.status.additional_resources
                    problems = await self.create_config_maps(request, config_maps, facts.destination, graph)
                    is_complete = not any(problems.values())
                    report = status.created(request, graph, (*problems,), is_complete=is_complete)
                    record = partial(api.extended, created=graph is not None)
                    decision = decide.Decision(report, record) if is_complete else decide.held(report)
        except ActionBlocked as error:
            step, reason = failed
            reason = api.RequestReason.NAME_CONFLICT if error.is_taken else reason
            decision = decide.held(status.blocked(request, step, reason, str(error)))
        return await self._report(request, decision)

    async def _job(self, request: Request, facts: decide.RequestFacts) -> Job:
        """Create the Job. First delete the results of an earlier one, which would pass for its own."""
        settings, spec = self.reader.settings, api.accepted_spec(request)
        if missing := render.missing_settings(spec, settings):
            raise ActionBlocked(missing)
        if (stale := facts.output) is not None:
            await self.writer.delete(stale)
        await self._ensure_account(request)
        base = await self._base(request, facts.config_maps)
        body = render.profiling_job(request, spec, settings, base)
        body["metadata"]["ownerReferences"] = [controller_reference(request)]
        with self._creating(request, Job.KIND.name, read.job_key(request), body):
            job = await self.writer.apply(Job, body, force=False, uid=ABSENT)
        message = f"Created Job {job.metadata.name}"
        self.reporter.recorder.event(request, reason="CreateJob", message=message)
        return job

    async def _ensure_account(self, request: Request) -> None:
        """Ensure the Job's ServiceAccount; the installation of a restricted operator provides it instead."""
        spec = api.accepted_spec(request)
        desired = render.account_objects(request.metadata.namespace, spec, self.reader.settings)
        if not desired:
            return
        types: tuple[type[Resource], ...] = (ServiceAccount, RoleBinding)
        applied = await self.applier.apply(request, Shared(desired, types, labels.SHARED))
        if applied.failures:
            raise applied.failures[0]
        causes = [blocked.message for blocked in applied.blocked]
        if causes:
            raise ActionBlocked(f"failed to ensure profiling job RBAC: {'; '.join(causes)}")
        reads_nodes = self.gpu_rbac.name and spec.enable_gpu_discovery
        if reads_nodes and (problem := await self.gpu_rbac.admit(request)):
            raise ActionBlocked(problem)

    async def _base(
        self, request: Request, present: Mapping[str, api.Output]
    ) -> api.ConfigMapReference | None:
        """Write the completed base graph to a ConfigMap; None if the user's ConfigMap, or none, is used."""
        texts = {name: live.data for name, live in present.items()}
        size = sum(len(text) for data in texts.values() for text in data.values())
        body = await parsed(size, results.base_config_map, request, api.accepted_spec(request), texts)
        if body is None:
            return None
        name = body["metadata"]["name"]
        body["metadata"]["ownerReferences"] = [controller_reference(request)]
        try:
            await self._config_map(request, body, present)
        except ActionBlocked as error:
            advice = ": rename or delete it" if error.is_taken else ""
            raise ActionBlocked(f"ConfigMap {name}: {error}{advice}", is_taken=error.is_taken) from error
        return api.ConfigMapReference(name, render.BASE_FILE)

    async def _collect(self, request: Request, facts: decide.RequestFacts) -> Result:
        """Record the results in the status before they are used; the API server may refuse to store them."""
        try:
            return await self._report(request, await self._results(request, facts))
        except results.BadOutput as error:
            text = str(error)
        except Invalid as error:
            text = f"the API server does not store the profiling results: {error.message}"
        job_progress = decide.progress_of(facts)
        if job_progress.message:
            text = f"{text}. The profiler reports: {job_progress.message}"
        report = status.not_generated(request, text, job_progress, rfc3339())
        return await self._report(request, decide.Decision(report))

    async def _results(self, request: Request, facts: decide.RequestFacts) -> decide.Decision:
        spec = api.accepted_spec(request)
        if facts.output is None:
            name = read.output_key(request).name
            raise results.BadOutput(
                f"output ConfigMap {name} not found - profiling may not have completed yet"
            )
        data = facts.output.data
        decide.require_confirmed(request, spec, facts.reports, data)
        output = await parsed(sum(map(len, data.values())), results.read_output, request, spec, data)
        results.require_small(output.config_maps)
        target = results.target(request, spec) if spec.auto_apply else None
        report = status.generated(request, output, decide.progress_of(facts), target=target, now=rfc3339())
        return decide.Decision(report, api.with_results)

    async def create_graph(self, request: Request, destination: decide.Destination) -> DynamoGraphDeployment:
        """Create the graph.

        Raises:
            ActionBlocked: it is refused.
            OperatorError: the API server failed, or the graph exists by now; the caller retries.
        """
        if destination.refusal:
            raise ActionBlocked(destination.refusal)
        graph_key = Key(destination.namespace, decide.target_of(request).name)
        body = results.deployed(request, api.accepted_spec(request), graph_key)
        with self._creating(request, DynamoGraphDeployment.KIND.name, graph_key, body):
            return await self.writer.create(DynamoGraphDeployment, body)

    async def create_config_maps(
        self,
        request: Request,
        manifests: Iterable[Object],
        destination: decide.Destination,
        graph: DynamoGraphDeployment | None,
    ) -> dict[str, bool]:
        """Create the ConfigMaps that profiling found; return the errors, and whether a retry may succeed.

        The graph, which mounts them, owns them. If it is None, the user creates it, and they have no owner.
        """
        problems: dict[str, bool] = {}
        desired = tuple(results.named_config_maps(manifests))
        if desired and destination.refusal:
            return {f"Failed to create ConfigMaps from profiling output: {destination.refusal}": True}
        for manifest in desired:
            name = manifest["metadata"]["name"]
            try:
                body = results.config_map(request, manifest, destination.namespace)
                if graph is not None:
                    body["metadata"]["ownerReferences"] = [render.owner_reference(graph)]
                await self._config_map(request, body, destination.config_maps)
            except (results.BadOutput, ActionBlocked) as error:
                text = f"failed to create ConfigMap {name}: {error}"
                may_succeed = isinstance(error, ActionBlocked) and not error.is_invalid
                problems[f"Failed to create ConfigMaps from profiling output: {text}"] = may_succeed
        return problems

    async def _config_map(self, request: Request, body: Object, present: Mapping[str, api.Output]) -> None:
        live = present.get(body["metadata"]["name"])
        if live is not None and not results.is_own_config_map(request, live):
            text = "it exists and has another owner; the operator leaves it alone"
            raise ActionBlocked(text, is_taken=True)
        uid = live.metadata.uid if live is not None else ABSENT
        try:
            await self.writer.apply(api.Output, body, force=live is not None, uid=uid)
        except Refused as error:
            raise ActionBlocked(error.message, is_invalid=isinstance(error, Invalid)) from error

    @contextmanager
    def _creating(self, request: Request, kind: str, key: Key, body: Object) -> Iterator[None]:
        # What was refused is not repeated. A missing namespace is a refusal too.
        target = Target(request.metadata.uid, kind, key)
        try:
            with self.suppression.suppressing_repeats(target, digest_of(body), ""):
                yield
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error
        except NotFound as error:
            raise ActionBlocked(error.message) from error

    async def _report(self, request: Request, decision: decide.Decision) -> Result:
        """Write the status, queue the events, and extend the record; nothing of it if it is unchanged."""
        report = decision.report
        if report is None:
            return DONE
        limit = self.reporter.limit if decision.is_paced else None
        if limit and (wait := limit.wait(request, report.status)):
            return Result(wait)
        late = status.change_rejected(request)
        stored = await patch_status(self.writer, request, report.status, limit=limit)
        if stored is not request:
            is_processed = not status.change_rejected(stored)
            for event in (*report.events, *(late if is_processed else ())):
                self.reporter.recorder.event(
                    request, reason=event.reason, message=event.message, warning=event.is_warning
                )
        # The record has digests of values as stored: the API server may have changed their form.
        if decision.record is not None and (desired := decision.record(stored)) != api.recorded(stored):
            await patch_metadata(stored, {"annotations": api.annotation(desired)}, self.writer)
        return Result(decision.requeue_after_seconds)
