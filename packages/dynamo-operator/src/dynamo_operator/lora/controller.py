"""Reconciler of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are not in the API server: workers forget, hang and lie, and the operator may be killed at any
moment. So the status records what a call may do before the call starts, each reconcile compares the desired
state with the recorded one, and calls run concurrently (`calls`).
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
    invalid_status,
    model_status,
    noted,
    observed,
    places,
    remembered,
    tells_only_failures,
)
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.model import model_problems
from dynamo_operator.lora.calls import Infos, KnownEndpoints, ModelCalls, unload_all
from dynamo_operator.lora.read import model_watches, read_model
from dynamo_operator.reconcile.finalizer import FINALIZER, with_finalizer, without_finalizer
from dynamo_operator.reconcile.preflight import report_paused
from dynamo_operator.reconcile.report import Reporter, earliest
from dynamo_operator.reconcile.unreadable import report_unreadable
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.kind import Key
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
        """Start the calls that are due, and write the status."""
        if error := self.cache.broken(DynamoModel, key):
            return await report_unreadable(DynamoModel, key, error, self.client, self.reporter)
        model = self.cache.get(DynamoModel, key)
        if model is None:
            self.calls.forget(key)
            return DONE
        if model.metadata.deletion_timestamp:
            return await self._leave(model)
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
        # With it as long as something of the model is, or will be, in workers.
        finalize = with_finalizer if planned.needs_finalizer else without_finalizer
        model = await finalize(model, self.reporter.writer)
        status = model_status(model, spec, observed(planned, inputs))
        recorded = places(status)
        due = [work for work in planned.due if work.endpoint.id in recorded]
        start = self.calls.chosen(state, due)
        again = planned.requeue_after_seconds
        wait = self._pace(model, status).wait(model, status)
        if all(noted(model, pending(work.endpoint, work.calls)) for work in start):
            self.calls.start(model.key, state, start)
            if wait:
                return earliest(Result(wait), *again)
            stored = await self._write(model, status, state)
        elif wait and len(planned.present) > LARGE:
            return earliest(Result(wait), *again)
        else:
            stored = await self._write(model, status, state)
            self.calls.start(model.key, state, start)
        return replace(earliest(DONE, *again), written=stored)

    def _pace(self, model: DynamoModel, status: DynamoModelStatus) -> StatusRateLimit:
        """Seconds between two writes of such a status."""
        if len(status.endpoints) <= LARGE:
            return self.reporter.limit
        return self.tally_pace if tells_only_failures(model, status) else self.large_pace

    def _state(self, model: DynamoModel) -> KnownEndpoints:
        """Known state of the model's endpoints: ours, unless the status is not the one that we wrote."""
        key, uid = model.key, model.metadata.uid
        state = self.calls.state_of(key, uid)
        if state is None or state.written != _written(model):
            state = self.calls.learn(key, uid, remembered(model))
            state.written = _written(model)
        self.calls.harvest(state)
        return state

    def _read(self, model: DynamoModel, state: KnownEndpoints) -> ModelInputs:
        """The inputs of the model's plan. Calls to pods that are gone are given up."""
        inputs = read_model(self.cache, model, state, self.calls)
        self.calls.give_up(state, inputs.is_gone)
        return inputs

    async def _write(
        self, model: DynamoModel, status: DynamoModelStatus, state: KnownEndpoints
    ) -> DynamoModel:
        """The model with this status, once its events are recorded."""
        stored = await patch_status(
            self.reporter.writer, model, status, pace=self._pace(model, status)
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

    async def _leave(self, model: DynamoModel) -> Result:
        """Unload the LoRAs of a model that is being deleted, then remove the finalizer."""
        if FINALIZER not in model.metadata.finalizers:
            self.calls.forget(model.key)
            return DONE
        state = self._state(model)
        inputs = self._read(model, state)
        if state.leaving is None:
            ends = plan_unloading(model, inputs)
            state.endpoints = {endpoint.id: endpoint for endpoint in ends}
            if ends and not self.calls.silence:
                work = unload_all(self.calls, model.metadata.namespace, state, ends)
                state.leaving = self.calls.begin(model.key, work)
                return DONE  # its end wakes us
        elif not state.leaving.done():
            return DONE
        elif _was_cut_off(state.leaving):
            state.leaving = None
            return Result(LEAVE_AGAIN_SECONDS)
        await without_finalizer(model, self.reporter.writer)
        self.calls.forget(model.key)
        failed = state.leaving.result() if state.leaving is not None else None
        if state.leaving is not None or state.endpoints:
            self._report_leaving(model, len(state.endpoints), failed)
        return DONE

    def _report_leaving(self, model: DynamoModel, count: int, failed: int | None) -> None:
        """Record what became of the LoRAs of a deleted model. No `failed`: no worker may be called."""
        reason = "LoRAUnloadFailed"
        if failed is None:
            text = f"{count} endpoint(s) keep the LoRA: {self.calls.silence}"
        elif failed:
            text = f"Failed to unload LoRA from some endpoints: {failed} task(s) failed"
        else:
            reason, text = "LoRAUnloaded", f"Unloaded LoRA from {count} endpoint(s)"
        self.reporter.recorder.event(model, reason=reason, message=text, warning=failed != 0)


def _was_cut_off(leaving: "asyncio.Task[int | None]") -> bool:
    """Whether workers were not asked because the namespace was another operator's meanwhile."""
    has_result = not leaving.cancelled() and leaving.exception() is None
    return has_result and leaving.result() is None


def _written(model: DynamoModel) -> tuple[Infos, Infos]:
    return model.status.endpoints, model.status.former_endpoints
