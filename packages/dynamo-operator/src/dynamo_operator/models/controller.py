"""The controller of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are in workers, not in the API server. Workers restart, hang and report wrong results, and the
operator may be killed at any moment. So the status records what a call may change before the call starts,
each reconcile compares the desired state with the recorded one, and calls run concurrently (`calls`).
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_operator import labels
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.models.calls import Infos, KnownEndpoints, ModelCalls, unload_all
from dynamo_operator.models.decide import decide
from dynamo_operator.models.plan import ModelInputs, pending, plan_unloading
from dynamo_operator.models.read import model_watches, read_model
from dynamo_operator.models.status import changes_only_failures, is_recorded, model_status_events, remembered
from dynamo_operator.shared.patches import with_finalizer, without_finalizer
from dynamo_operator.shared.report import Reporter, earliest, report_paused, report_unreadable
from kube_runtime.apply.status import StatusRateLimit, patch_status
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.types.meta import Key, Resource

STATUS_SECONDS = 2.0
"""Least seconds between two writes of progress."""

UNLOAD_RETRY_SECONDS = 5.0
"""Seconds until the unloading of a deleted model is retried after a namespace lease interrupted it."""

LARGE = 200
LARGE_SECONDS, TALLY_SECONDS = 5.0, 60.0
"""The same with more than `LARGE` endpoints, and if only counts of failures changed: the status of a thousand
endpoints has some 300 KiB, which etcd stores and every watch receives."""


@dataclass(frozen=True, slots=True)
class ModelController:
    """Loads, reloads and unloads LoRAs."""

    cache: Cache
    reporter: Reporter
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
        """Start due calls, and write the status."""
        if error := self.cache.broken(DynamoModel, key):
            return await report_unreadable(DynamoModel, key, error, self.reporter)
        model = self.cache.get(DynamoModel, key)
        if model is None:
            self.calls.forget(key)
            return DONE
        if model.metadata.deletion_timestamp:
            return await self._unload(model)
        if model.metadata.is_true(labels.PAUSED):
            return await report_paused(model, self.reporter)
        return await self._act(model)

    async def _act(self, model: DynamoModel) -> Result:
        state = self._state(model)
        decision = decide(model, self._read(model, state))
        if decision.known is not None:
            state.record(decision.known)
        if decision.needs_finalizer is not None:
            finalize = with_finalizer if decision.needs_finalizer else without_finalizer
            model = await finalize(model, self.reporter.writer)
        status, times = decision.status, decision.requeue_after_seconds
        start = self.calls.chosen(state, decision.due)
        wait = self._pace(model, status).wait(model, status)
        if all(is_recorded(model, pending(work.endpoint, work.calls)) for work in start):
            self.calls.start(model.key, state, start)
            if wait:
                return earliest(Result(wait), *times)
            stored = await self._write(model, status, state)
        elif wait and len(status.endpoints) > LARGE:
            return earliest(Result(wait), *times)
        else:
            stored = await self._write(model, status, state)
            self.calls.start(model.key, state, start)
        return replace(earliest(DONE, *times), written=stored)

    def _pace(self, model: DynamoModel, status: DynamoModelStatus) -> StatusRateLimit:
        if len(status.endpoints) <= LARGE:
            return self.reporter.limit
        return self.tally_pace if changes_only_failures(model, status) else self.large_pace

    def _state(self, model: DynamoModel) -> KnownEndpoints:
        state = self.calls.state_of(model.key, model.metadata.uid)
        if state.written != _written(model):  # another client wrote the status
            state.endpoints, state.written = remembered(model), _written(model)
        self.calls.collect(state)
        return state

    def _read(self, model: DynamoModel, state: KnownEndpoints) -> ModelInputs:
        inputs = read_model(self.cache, model, state, self.calls)
        self.calls.give_up(state, inputs.is_gone)
        return inputs

    async def _write(
        self, model: DynamoModel, status: DynamoModelStatus, state: KnownEndpoints
    ) -> DynamoModel:
        stored = await patch_status(self.reporter.writer, model, status, limit=self._pace(model, status))
        state.written = _written(stored)
        for event in model_status_events(model, stored) if stored is not model else ():
            self.reporter.recorder.event(
                model, reason=event.reason, message=event.message, warning=event.is_warning
            )
        return stored

    async def _unload(self, model: DynamoModel) -> Result:
        if FINALIZER not in model.metadata.finalizers:
            self.calls.forget(model.key)
            return DONE
        state = self._state(model)
        inputs = self._read(model, state)
        if state.unloading is None:
            ends = plan_unloading(model, inputs)
            state.endpoints = {endpoint.id: endpoint for endpoint in ends}
            if ends and not self.calls.silence:
                work = unload_all(self.calls, model.metadata.namespace, state, ends)
                state.unloading = self.calls.begin(model.key, work)
                return DONE  # the end of the task wakes the model
        elif not state.unloading.done():
            return DONE
        elif _was_interrupted(state.unloading):
            state.unloading = None
            return Result(UNLOAD_RETRY_SECONDS)
        await without_finalizer(model, self.reporter.writer)
        self.calls.forget(model.key)
        failed = state.unloading.result() if state.unloading is not None else None
        if state.unloading is not None or state.endpoints:
            self._report_unloading(model, len(state.endpoints), failed)
        return DONE

    def _report_unloading(self, model: DynamoModel, count: int, failed: int | None) -> None:
        """Record an Event about the LoRAs of a deleted model. `failed` None: no worker may be called."""
        reason = "LoRAUnloadFailed"
        if failed is None:
            text = f"{count} endpoint(s) keep the LoRA: {self.calls.silence}"
        elif failed:
            text = f"Failed to unload LoRA from some endpoints: {failed} task(s) failed"
        else:
            reason, text = "LoRAUnloaded", f"Unloaded LoRA from {count} endpoint(s)"
        self.reporter.recorder.event(model, reason=reason, message=text, warning=failed != 0)


def _was_interrupted(unloading: asyncio.Task[int | None]) -> bool:  # by another operator of the namespace
    has_result = not unloading.cancelled() and unloading.exception() is None
    return has_result and unloading.result() is None


def _written(model: DynamoModel) -> tuple[Infos, Infos]:
    return model.status.endpoints, model.status.former_endpoints
