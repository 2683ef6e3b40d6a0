"""The controller of DynamoGraphDeploymentRequest: profiles a model, and creates the resulting graph.

One reconcile carries out one decision (`decide.py`) and writes one status, which triggers the next. The
process may be killed between any two requests to the API server, and the next one must reach the same result.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, TypeVar

import msgspec

from dynamo_operator import labels
from dynamo_operator.documents import LARGE_TEXT, ONE_AT_A_TIME
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api, decide, extras, read, render, results, status
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.decide import ActionBlocked, Outcome, RequestInputs, Work
from dynamo_operator.requests.job_override import overridden_job
from dynamo_operator.shared.patches import patch_metadata, without_finalizer
from dynamo_operator.shared.problems import dotted
from dynamo_operator.shared.report import Reporter, report_unreadable
from kube_runtime.apply.applier import Applier, Shared, shared_watch
from kube_runtime.apply.result import Obstructed
from kube_runtime.apply.status import patch_status
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.cache.informer import Watches
from kube_runtime.client.client import ABSENT
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import Invalid, NotFound, Refused
from kube_runtime.merge import MergeError
from kube_runtime.types.kinds import Job, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Key, Object, Resource, controller_reference, fitted, owner_reference

T = TypeVar("T")
_EVENT_CHARACTERS = 1000
_HARDWARE_MANAGER = "dynamo-operator-dgdr"
"""The field manager of hardware that was discovered. Source: Dynamo 1.x."""


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

    async def reconcile(self, key: Key) -> Result:
        """Read what the stage of this request depends on, decide, carry that out, and report it."""
        if error := self.reader.cache.broken(Request, key):
            return await report_unreadable(Request, key, error, self.reporter)
        request = self.reader.cache.get(Request, key)
        if request is None:
            await self.gpu_rbac.withdraw()
            return DONE
        live = await without_finalizer(request, self.reporter.writer)
        request = _read(live)
        if request.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        if read.has_searched(request):
            await self.gpu_rbac.withdraw()
        inputs, now = await self.reader.read(request), datetime.now(UTC)
        decision = decide.decide(request, inputs, now)
        if decision.discovered:
            await self._add_hardware(request, decision.discovered)
            return DONE  # its new state is reconciled
        if decision.deletes and decision.report is None:
            await self.reporter.writer.ensure_newest(request)  # the decision depends on its present spec
        for gone in decision.deletes:
            await self.reporter.writer.delete(gone)
        if decision.work is None:
            return await self._report(live, decision, is_later=inputs.is_later)
        outcome = await self._work(request, decision.work, inputs)
        try:
            return await self._report(live, decide.after(request, inputs, outcome, now))
        except Invalid as refusal:
            if not isinstance(outcome, results.ProfilingResult):
                raise
            return await self._report(live, decide.after(request, inputs, refusal, now))

    # Only the stored version is written: no request of the operator waits for its own webhook. A user may
    # have changed the request meanwhile, so the patch names the version that was read.
    async def _add_hardware(self, request: Request, discovered: Object) -> None:
        metadata, writer = request.metadata, self.reporter.writer
        version = {"resourceVersion": metadata.resource_version}
        if writer.client.stored(Request.KIND) != Request.KIND:
            patch: Object = {"metadata": version, "spec": {"hardware": discovered}}
        else:
            patch = {"metadata": {**version, "annotations": extras.with_hardware(metadata, discovered)}}
        await writer.merge_patch(
            *(Request, request.key, patch), uid=metadata.uid, field_manager=_HARDWARE_MANAGER
        )
        fields = (f"{name}: {msgspec.json.encode(value).decode()}" for name, value in discovered.items())
        message = f"Discovered by the labels of nodes: {', '.join(fields)}"
        self.reporter.recorder.event(request, reason="HardwareDiscovered", message=message)

    async def _work(self, request: Request, work: Work, inputs: RequestInputs) -> Outcome:
        try:
            match work:
                case Work.START:
                    return await self._job(request, inputs)
                case Work.COLLECT:
                    data = inputs.output.data if inputs.output is not None else {}
                    size, spec = sum(map(len, data.values())), api.accepted_spec(request)
                    try:
                        return await _parsed(size, results.read_output, request, spec, data)
                    except results.BadOutput as unusable:
                        return unusable
                case Work.CREATE:
                    graph = inputs.graph
                    if graph is None and extras.applies(request):
                        key = Key(inputs.destination.namespace, decide.target_of(request).name)
                        body = results.deployed(request, api.accepted_spec(request), key)
                        with self._creating(request, DynamoGraphDeployment.KIND.name, key, body):
                            graph = await self.reporter.writer.create(DynamoGraphDeployment, body)
                    problems = await self.create_config_maps(request, inputs.destination, graph)
                    return decide.Created(graph, problems)
        except ActionBlocked as blocked:
            return blocked

    async def _job(self, request: Request, inputs: RequestInputs) -> Job:
        """Create the Job. First delete the results of an earlier one, which would pass for its own."""
        settings, spec = self.reader.settings, api.accepted_spec(request)
        if (stale := inputs.output) is not None:
            await self.reporter.writer.delete(stale)
        await self._ensure_account(request)
        base = await self._base(request, inputs.config_maps)
        kind = self.reporter.writer.client.stored(Request.KIND)
        body = render.profiling_job(request, spec, settings, base, kind)
        body = self._overridden(request, body)
        body["metadata"]["ownerReferences"] = [controller_reference(request, kind)]
        with self._creating(request, Job.KIND.name, read.job_key(request), body):
            job = await self.reporter.writer.apply(Job, body, force=False, uid=ABSENT)
        message = f"Created Job {job.metadata.name}"
        self.reporter.recorder.event(request, reason="CreateJob", message=message)
        return job

    def _overridden(self, request: Request, body: Object) -> Object:
        """The Job with the override of the request; what has no effect is an event."""
        override = extras.accepted(request).overrides.profiling_job
        if not override:
            return body
        from kube_runtime.schema import embedded  # a running operator needs no schemas otherwise

        try:
            result = overridden_job(body, override, embedded("JobSpec"))
        except MergeError as error:
            path = dotted(("spec", "overrides", "profilingJob", *error.path))
            raise ActionBlocked(f"{path} {error.text}") from error
        if result.warnings:
            message = fitted([str(warning) for warning in result.warnings], _EVENT_CHARACTERS, between="; ")
            self.reporter.recorder.event(request, reason="OverrideIgnored", message=message, warning=True)
        return result.job

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
        body = await _parsed(size, results.base_config_map, request, api.accepted_spec(request), texts)
        if body is None:
            return None
        name = body["metadata"]["name"]
        kind = self.reporter.writer.client.stored(Request.KIND)
        body["metadata"]["ownerReferences"] = [controller_reference(request, kind)]
        try:
            await self._config_map(request, body, present)
        except ActionBlocked as error:
            advice = ": rename or delete it" if error.is_taken else ""
            raise ActionBlocked(f"ConfigMap {name}: {error}{advice}", is_taken=error.is_taken) from error
        return api.ConfigMapReference(name, render.BASE_FILE)

    async def create_config_maps(
        self, request: Request, destination: decide.Destination, graph: DynamoGraphDeployment | None
    ) -> dict[str, bool]:
        """Create the ConfigMaps that profiling found; return the errors, and whether a retry may succeed.

        The graph, which mounts them, owns them. If it is None, the user creates it, and they have no owner.
        """
        problems: dict[str, bool] = {}
        for manifest in results.named_config_maps(request.status.additional_resources):
            name = manifest["metadata"]["name"]
            try:
                body = results.config_map(request, manifest, destination.namespace)
                if graph is not None:
                    kind = self.reporter.writer.client.stored(graph.KIND)
                    reference = owner_reference(kind, graph.metadata.name, graph.metadata.uid)
                    body["metadata"]["ownerReferences"] = [reference]
                await self._config_map(request, body, destination.config_maps)
            except (results.BadOutput, ActionBlocked) as error:
                may_succeed = isinstance(error, ActionBlocked) and not error.is_invalid
                problems[f"failed to create ConfigMap {name}: {error}"] = may_succeed
        return problems

    async def _config_map(self, request: Request, body: Object, present: Mapping[str, api.Output]) -> None:
        live = present.get(body["metadata"]["name"])
        if live is not None and not results.is_own_config_map(request, live):
            text = "it exists and has another owner; the operator leaves it alone"
            raise ActionBlocked(text, is_taken=True)
        uid = live.metadata.uid if live is not None else ABSENT
        try:
            await self.reporter.writer.apply(api.Output, body, force=live is not None, uid=uid)
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

    async def _report(self, live: Request, decision: decide.Decision, *, is_later: bool = False) -> Result:
        """Write the status, queue the events, and extend the record; nothing of it if it is unchanged.

        `live` is the request as it is stored; `is_later`: it was written in v1beta1, and is not accepted yet.
        """
        report = decision.report
        if report is None:
            return DONE
        desired = _written(report.status, is_later=is_later)
        limit = self.reporter.limit if decision.may_wait else None
        if limit and (wait := limit.wait(live, desired)):
            return Result(wait)
        stored = await patch_status(self.reporter.writer, live, desired, limit=limit)
        self.reporter.record(live, *status.events_of(live, stored, report))
        # The record has digests of values as stored: the API server may have changed their form.
        if decision.record is not None and (record := decision.record(stored)) != api.recorded(stored):
            await patch_metadata(stored, {"annotations": api.annotation(record)}, self.reporter.writer)
        return Result(decision.requeue_after_seconds)


async def _parsed(characters: int, parse: Callable[..., T], *args: object) -> T:
    """Return `parse(*args)`, which reads so many characters: if they are many, in a thread, one at a time."""
    if characters <= LARGE_TEXT:
        return parse(*args)
    return await asyncio.get_running_loop().run_in_executor(ONE_AT_A_TIME, partial(parse, *args))


# The words of v1beta1 are imported for the first request that was written in it.
def _read(live: Request) -> Request:
    """The request with its status in the words by which the operator decides."""
    if not extras.is_text_in_v1beta1(live.status.accepted_spec):
        return live
    from dynamo_operator.requests.conditions_v1beta1 import read

    return read(live)


def _written(status: RequestStatus, *, is_later: bool) -> RequestStatus:
    """The status in the words in which it is written; `is_later`: those of v1beta1, also if not accepted."""
    if not (is_later or extras.is_text_in_v1beta1(status.accepted_spec)):
        return status
    from dynamo_operator.requests.conditions_v1beta1 import written

    return written(status)
