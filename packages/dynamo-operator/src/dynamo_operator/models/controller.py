"""The controller of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are in workers, not in the API server. Workers restart, hang and report wrong results, and the
operator may be killed at any moment. So the status records what a call may change before the call starts,
each reconcile compares the desired state with the recorded one, and calls run concurrently (`calls`).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.models.calls import KnownEndpoints, ModelCalls
from dynamo_operator.models.decide import ModelDecision, Unload, decide
from dynamo_operator.models.read import model_watches, read_model
from dynamo_operator.models.status import changes_only_failures, listed, model_status_events
from dynamo_operator.shared.patches import with_finalizer, without_finalizer
from dynamo_operator.shared.report import Reporter, earliest, report_paused, report_unreadable
from kube_runtime.apply.status import StatusRateLimit, patch_status
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.types.meta import Key, Resource

STATUS_SECONDS = 2.0
"""Least seconds between two writes of progress."""

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
    large_limit: StatusRateLimit = field(default_factory=lambda: StatusRateLimit(LARGE_SECONDS))
    tally_limit: StatusRateLimit = field(default_factory=lambda: StatusRateLimit(TALLY_SECONDS))

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
        if model.metadata.is_true(labels.PAUSED) and not model.metadata.deletion_timestamp:
            return await report_paused(model, self.reporter)
        state = self.calls.update(model)
        inputs = read_model(self.cache, model, state, self.calls)
        decision = decide(model, inputs, self.calls.now())
        for run in (state.runs[place] for place in decision.gone):
            run.task.cancel()
        if decision.status is None:
            return await self._unload(model, state, decision)
        return await self._load(model, state, decision, decision.status)

    async def _load(
        self, model: DynamoModel, state: KnownEndpoints, decision: ModelDecision, status: DynamoModelStatus
    ) -> Result:
        if decision.known is not None:
            state.record(decision.known)
        if decision.needs_finalizer is not None:
            finalize = with_finalizer if decision.needs_finalizer else without_finalizer
            model = await finalize(model, self.reporter.writer)
        limit, is_large = self.reporter.limit, len(status.endpoints) > LARGE
        if is_large:
            limit = self.tally_limit if changes_only_failures(model, status) else self.large_limit
        wait, times = limit.wait(model, status), decision.requeue_after_seconds
        if decision.is_recorded:
            self.calls.start(model.key, state, decision.due)
        if wait and (decision.is_recorded or is_large):
            return earliest(Result(wait), *times)
        stored = await patch_status(self.reporter.writer, model, status, limit=limit)
        state.written = listed(stored.status)
        if stored is not model:
            self.reporter.record(model, *model_status_events(model, stored))
        if not decision.is_recorded:
            self.calls.start(model.key, state, decision.due)
        return replace(earliest(DONE, *times), written=stored)

    async def _unload(self, model: DynamoModel, state: KnownEndpoints, decision: ModelDecision) -> Result:
        match decision.unload:
            case Unload.START:
                self.calls.unload(model.key, state, decision.known or ())  # its end wakes the model
            case Unload.RETRY:
                state.unloading = None
            case Unload.END:
                await without_finalizer(model, self.reporter.writer)
                self.calls.forget(model.key)
                if decision.event is not None:
                    if state.unloading is not None:
                        state.unloading.result()  # raises what it ended with
                    self.reporter.record(model, decision.event)
            case Unload.WAIT:
                pass
        return earliest(DONE, *decision.requeue_after_seconds)
