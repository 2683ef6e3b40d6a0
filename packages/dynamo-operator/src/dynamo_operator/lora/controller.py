"""The controller of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are in workers, not in the API server. Workers restart, hang and report wrong results, and the
operator may be killed at any moment. So the status records what a call may change before the call starts,
each reconcile compares the desired state with the recorded one, and calls run concurrently (`calls`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec, DynamoModelStatus
from dynamo_graphs.plan.lora_calls import pending
from dynamo_graphs.plan.model import ModelInputs, plan_model, plan_unloading
from dynamo_graphs.status.events import model_status_events
from dynamo_graphs.status.model import (
    changes_only_failures,
    invalid_status,
    is_recorded,
    model_status,
    observed,
    recorded_places,
    remembered,
)
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.model import model_problems
from dynamo_operator.lora.calls import Infos, KnownEndpoints, ModelCalls, unload_all
from dynamo_operator.lora.read import model_watches, read_model
from dynamo_operator.reconcile.patches import FINALIZER, with_finalizer, without_finalizer
from dynamo_operator.reconcile.preflight import report_paused, report_unreadable
from dynamo_operator.reconcile.report import Reporter, earliest
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

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
        if is_paused(model):
            return await report_paused(model, self.reporter)
        problems = model_problems(model)
        if problems or model.spec is None:
            return await self._refuse(model, problems)
        return await self._reconcile(model, model.spec)

    async def _reconcile(self, model: DynamoModel, spec: DynamoModelSpec) -> Result:
        state = self._state(model)
        inputs = self._read(model, state)
        planned = plan_model(model, spec, inputs)
        state.record((*planned.present, *planned.former))
        # The finalizer stays while workers have, or will get, a LoRA of the model.
        finalize = with_finalizer if planned.needs_finalizer else without_finalizer
        model = await finalize(model, self.reporter.writer)
        status = model_status(model, spec, observed(planned, inputs))
        recorded = recorded_places(status)
        due = [work for work in planned.due if work.endpoint.id in recorded]
        start = self.calls.chosen(state, due)
        times = planned.requeue_after_seconds
        wait = self._pace(model, status).wait(model, status)
        if all(is_recorded(model, pending(work.endpoint, work.calls)) for work in start):
            self.calls.start(model.key, state, start)
            if wait:
                return earliest(Result(wait), *times)
            stored = await self._write(model, status, state)
        elif wait and len(planned.present) > LARGE:
            return earliest(Result(wait), *times)
        else:
            stored = await self._write(model, status, state)
            self.calls.start(model.key, state, start)
        return replace(earliest(DONE, *times), written=stored)

    def _pace(self, model: DynamoModel, status: DynamoModelStatus) -> StatusRateLimit:
        """The rate limit for such a status."""
        if len(status.endpoints) <= LARGE:
            return self.reporter.limit
        return self.tally_pace if changes_only_failures(model, status) else self.large_pace

    def _state(self, model: DynamoModel) -> KnownEndpoints:
        """The known state of the model's endpoints; read from the status if another client wrote that."""
        key, uid = model.key, model.metadata.uid
        state = self.calls.state_of(key, uid)
        if state is None or state.written != _written(model):
            state = self.calls.learn(key, uid, remembered(model))
            state.written = _written(model)
        self.calls.collect(state)
        return state

    def _read(self, model: DynamoModel, state: KnownEndpoints) -> ModelInputs:
        """Read the inputs of the model's plan, and cancel calls to deleted pods."""
        inputs = read_model(self.cache, model, state, self.calls)
        self.calls.give_up(state, inputs.is_gone)
        return inputs

    async def _write(
        self, model: DynamoModel, status: DynamoModelStatus, state: KnownEndpoints
    ) -> DynamoModel:
        """Write the status, record its Events, and return the model with it."""
        stored = await patch_status(
            self.reporter.writer, model, status, limit=self._pace(model, status)
        )
        state.written = _written(stored)
        self._report(model, stored)
        return stored

    async def _refuse(self, model: DynamoModel, problems: Sequence[Problem]) -> Result:
        """Report the problems of the spec; loaded LoRAs stay."""
        stored = await patch_status(self.reporter.writer, model, invalid_status(model, problems))
        self._report(model, stored)
        return Result(written=stored)

    def _report(self, before: DynamoModel, after: DynamoModel) -> None:
        for event in model_status_events(before, after) if after is not before else ():
            self.reporter.recorder.event(
                before, reason=event.reason, message=event.message, warning=event.is_warning
            )

    async def _unload(self, model: DynamoModel) -> Result:
        """Unload the LoRAs of a model that is being deleted, then remove the finalizer."""
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


def _was_interrupted(unloading: "asyncio.Task[int | None]") -> bool:
    """Whether unloading was interrupted because another operator managed the namespace."""
    has_result = not unloading.cancelled() and unloading.exception() is None
    return has_result and unloading.result() is None


def _written(model: DynamoModel) -> tuple[Infos, Infos]:
    return model.status.endpoints, model.status.former_endpoints
