"""Reconciler of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are not in the API server: workers forget, hang and lie, and the operator may be killed at any
moment. So the status records what a call may do before the call starts, each reconcile compares the desired
state with the recorded one, and calls run concurrently (`calls`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec
from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.plan.lora_calls import pending
from dynamo_graphs.plan.model import ModelInputs, ModelPlan, plan_model, plan_unloading
from dynamo_graphs.status.model import (
    invalid_status,
    model_status,
    noted,
    observed,
    places,
    remembered,
    tells_only_failures,
)
from dynamo_graphs.status.model_events import model_status_events
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.model import model_problems
from dynamo_operator.lora.calls import Infos, KnownEndpoints, ModelCalls
from dynamo_operator.lora.finalizer import unload_all
from dynamo_operator.lora.read import model_watches, read_model
from dynamo_operator.reconcile.finalizer import FINALIZER, without_finalizer
from dynamo_operator.reconcile.pause import report_paused
from dynamo_operator.reconcile.report import earliest
from dynamo_operator.reconcile.unreadable import report_unreadable
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource

STATUS_SECONDS = 2.0
"""Shortest seconds between two writes of progress."""

LEAVE_AGAIN_SECONDS = 5.0
"""Seconds until the final unloading restarts that another operator's namespace lease cut off."""

LARGE = 200
LARGE_SECONDS, TALLY_SECONDS = 5.0, 60.0
"""How often it is with more endpoints than that, and how often if there is nothing new but one more failure:
the status of a thousand endpoints is some 300 KiB, and each write of it is one for etcd and all who watch."""


@dataclass(frozen=True, slots=True)
class ModelController:
    """Loads, reloads and unloads LoRAs."""

    client: Client
    writer: Writer
    cache: Cache
    recorder: Recorder
    pace: StatusRateLimit
    calls: ModelCalls
    large_pace: StatusRateLimit = field(default_factory=lambda: StatusRateLimit(LARGE_SECONDS))
    tally_pace: StatusRateLimit = field(default_factory=lambda: StatusRateLimit(TALLY_SECONDS))

    reconciles: ClassVar[type[Resource]] = DynamoModel
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds that are read."""
        return model_watches(self.cache)

    async def reconcile(self, key: Key) -> Result:
        """Start the calls that are due, and write the status."""
        if error := self.cache.broken(DynamoModel, key):
            return await report_unreadable(
                *(DynamoModel, key, error),
                client=self.client,
                writer=self.writer,
                recorder=self.recorder,
            )
        found = self.cache.get(DynamoModel, key)
        if found is None:
            self.calls.forget(key)
            return DONE
        if found.metadata.deletion_timestamp:
            return await self._leave(found)
        if is_paused(found):
            return await report_paused(found, self.writer, self.recorder)
        problems = model_problems(found)
        if problems or found.spec is None:
            return await self._refuse(found, problems)
        return await self._reconcile(found, found.spec)

    async def _reconcile(self, found: DynamoModel, spec: DynamoModelSpec) -> Result:
        known = self._known(found)
        inputs = self._read(found, known)
        planned = plan_model(found, spec, inputs)
        known.record((*planned.present, *planned.former))
        found = await self._claimed(found, planned)
        status = model_status(found, spec, observed(planned, inputs))
        told = places(status)
        due = [each for each in planned.due if each.endpoint.place in told]
        start = self.calls.chosen(known, due)
        again = planned.requeue_after_seconds
        wait = self._wait(found, status)
        if all(noted(found, pending(each.endpoint, each.calls)) for each in start):
            self.calls.start(found.key, known, start)
            if wait:
                return earliest(Result(wait), *again)
            stored = await self._write(found, status, known)
        elif wait and len(planned.present) > LARGE:
            return earliest(Result(wait), *again)
        else:
            stored = await self._write(found, status, known)
            self.calls.start(found.key, known, start)
        return replace(earliest(DONE, *again), written=stored)

    def _wait(self, found: DynamoModel, status: Object) -> float:
        """Seconds until this status may be written; 0 means now."""
        return self._pace(found, status).wait(found, status)

    def _pace(self, found: DynamoModel, status: Object) -> StatusRateLimit:
        """Seconds between two writes of such a status."""
        if len(status["endpoints"]) <= LARGE:
            return self.pace
        return self.tally_pace if tells_only_failures(found, status) else self.large_pace

    def _known(self, found: DynamoModel) -> KnownEndpoints:
        """Known state of the model's endpoints: ours, unless the status is not the one that we wrote."""
        key, uid = found.key, found.metadata.uid
        known = self.calls.known(key, uid)
        if known is None or known.written != _written(found):
            known = self.calls.learn(key, uid, remembered(found))
            known.written = _written(found)
        self.calls.harvest(known)
        return known

    def _read(self, found: DynamoModel, known: KnownEndpoints) -> ModelInputs:
        """The inputs of the model's plan. Calls to pods that are gone are given up."""
        inputs = read_model(self.cache, found, known, self.calls)
        self.calls.give_up(known, inputs.is_gone)
        return inputs

    async def _claimed(self, found: DynamoModel, planned: ModelPlan) -> DynamoModel:
        """The model with our finalizer if something of it is, or will be, in workers; else without.

        Raises:
            Conflict: it has changed meanwhile; the caller retries at once.
            OperatorError: that could not be written.
        """
        if not planned.needs_finalizer:
            return await without_finalizer(found, self.writer)
        metadata = found.metadata
        if FINALIZER in metadata.finalizers:
            return found
        finalizers = [*metadata.finalizers, FINALIZER]
        patch: Object = {
            "metadata": {"finalizers": finalizers, "resourceVersion": metadata.resource_version}
        }
        return await self.writer.merge_patch(DynamoModel, found.key, patch, uid=metadata.uid)

    async def _write(
        self, found: DynamoModel, status: Object, known: KnownEndpoints
    ) -> DynamoModel:
        """The model with this status, once its events are recorded."""
        stored = await patch_status(self.writer, found, status, pace=self._pace(found, status))
        known.written = _written(stored)
        self._report(found, stored)
        return stored

    async def _refuse(self, found: DynamoModel, problems: Sequence[Problem]) -> Result:
        """Report the problems of the spec; loaded LoRAs stay."""
        stored = await patch_status(self.writer, found, invalid_status(found, problems))
        self._report(found, stored)
        return Result(written=stored)

    def _report(self, before: DynamoModel, after: DynamoModel) -> None:
        for each in model_status_events(before, after) if after is not before else ():
            self.recorder.event(
                before, reason=each.reason, message=each.message, warning=each.is_warning
            )

    async def _leave(self, found: DynamoModel) -> Result:
        """Unload the LoRAs of a model that is being deleted, then remove the finalizer."""
        if FINALIZER not in found.metadata.finalizers:
            self.calls.forget(found.key)
            return DONE
        known = self._known(found)
        inputs = self._read(found, known)
        if known.leaving is None:
            ends = plan_unloading(found, inputs)
            known.endpoints = {each.place: each for each in ends}
            if ends and self.calls.silence:
                return await self._left_loaded(found, len(ends))
            if ends:
                work = unload_all(self.calls, found.metadata.namespace, known, ends)
                known.leaving = self.calls.begin(found.key, work)
                return DONE  # its end wakes us
        elif not known.leaving.done():
            return DONE
        elif _was_cut_off(known.leaving):
            known.leaving = None
            return Result(LEAVE_AGAIN_SECONDS)
        await without_finalizer(found, self.writer)
        self.calls.forget(found.key)
        if known.leaving is not None:
            self._report_leaving(found, known.leaving.result() or 0, len(known.endpoints))
        return DONE

    async def _left_loaded(self, found: DynamoModel, count: int) -> Result:
        """Remove the finalizer although workers have its LoRAs, since none may be called."""
        await without_finalizer(found, self.writer)
        self.calls.forget(found.key)
        text = f"{count} endpoint(s) keep the LoRA: {self.calls.silence}"
        self.recorder.event(found, reason="LoRAUnloadFailed", message=text, warning=True)
        return DONE

    def _report_leaving(self, found: DynamoModel, failed: int, count: int) -> None:
        if failed:
            text = f"Failed to unload LoRA from some endpoints: {failed} task(s) failed"
            self.recorder.event(found, reason="LoRAUnloadFailed", message=text, warning=True)
        else:
            text = f"Unloaded LoRA from {count} endpoint(s)"
            self.recorder.event(found, reason="LoRAUnloaded", message=text)


def _was_cut_off(leaving: "asyncio.Task[int | None]") -> bool:
    """Whether workers were not asked because the namespace was another operator's meanwhile."""
    is_told = not leaving.cancelled() and leaving.exception() is None
    return is_told and leaving.result() is None


def _written(model: DynamoModel) -> tuple[Infos, Infos]:
    return model.status.endpoints, model.status.former_endpoints
