"""The controller of DynamoModel: loads a LoRA into the pods of a base model, and reports which serve it.

The effects are in workers, not in the API server. Workers restart, hang and report wrong results, and the
operator may be killed at any moment. So the status records what a call may change before the call starts,
each reconcile compares the desired state with the recorded one, and calls run concurrently (`calls`).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from dynamo_operator import labels, names
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.models.calls import Infos, KnownEndpoints, ModelCalls, unload_all
from dynamo_operator.models.decide import decide
from dynamo_operator.models.plan import (
    ModelInputs,
    concerns,
    has_endpoints,
    pending,
    plan_unloading,
    pod_names,
    siblings,
)
from dynamo_operator.models.status import changes_only_failures, is_recorded, model_status_events, remembered
from dynamo_operator.shared.cluster import ModelService
from dynamo_operator.shared.conditions import is_paused
from dynamo_operator.shared.patches import with_finalizer, without_finalizer
from dynamo_operator.shared.report import Reporter, earliest, report_paused, report_unreadable
from kube_runtime.apply.status import StatusRateLimit, patch_status
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.types.kinds import EndpointSlice, Pod
from kube_runtime.types.meta import Key, R, Resource

SLICE_SELECTOR = labels.BASE_MODEL_HASH
"""Label selector of the watched EndpointSlices: those of base models."""

_NAMED = 5


# Every input must wake its models, and little else may: a namespace may have a thousand pods and a
# hundred models, and pods of other base models do not concern a model.
def read_model(cache: Cache, model: DynamoModel, state: KnownEndpoints, calls: ModelCalls) -> ModelInputs:
    """Read the inputs of a model's plan: the cached objects and the known state of its endpoints."""
    namespace = model.metadata.namespace
    base_model = model.spec.base_model_name if model.spec else ""
    service = cache.get(ModelService, Key(namespace, names.model_service_name(base_model)))
    named = service.metadata.annotations.get(labels.BASE_MODEL) if service else None
    # The names of two base models may have the same hash.
    colliding = named if named is not None and named != base_model else ""
    slices = () if colliding else tuple(_of_base(cache, EndpointSlice, namespace, base_model))
    recorded = (*state.endpoints.values(), *(run.endpoint for run in state.runs.values()))
    pods: dict[str, Pod] = {}
    for name in pod_names(slices) | {endpoint.pod_name for endpoint in recorded}:
        pod = cache.get(Pod, Key(namespace, name))
        if pod is not None:
            pods[name] = pod
    cause = ""
    if not has_endpoints(base_model, slices, pods.get):
        is_served = service is not None
        cause = _lack(cache, namespace, base_model, colliding=colliding, is_served=is_served)
    return ModelInputs(
        now=calls.now(),
        slices=slices,
        siblings=siblings(model, cache.list(DynamoModel, namespace)),
        pods=pods,
        lack=cause,
        recorded=state.endpoints,
        running={place: run.view for place, run in state.runs.items()},
        silence=calls.silence,
        room=calls.at_once,
    )


def _of_base(cache: Cache, type_: type[R], namespace: str, base_model: str) -> Iterator[R]:
    """The objects whose label names the base model."""
    hash_ = names.model_hash(base_model)
    for resource in cache.list(type_, namespace):
        if resource.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_:
            yield resource


def _lack(cache: Cache, namespace: str, base_model: str, *, colliding: str, is_served: bool) -> str:
    """Why the model has no endpoints, according to the cache."""
    if colliding:
        return f"its hash collides with that of {colliding}, which is served here: rename one of them"
    if is_served:
        if count := len(tuple(_of_base(cache, Pod, namespace, base_model))):
            return f"its components have {count} pod(s), none with an address yet"
        return "its components have no pods"
    served = sorted(_served(cache, namespace))
    if not served:
        return "no component in this namespace has a modelRef"
    shown = ", ".join(served[:_NAMED])
    omitted = f" and {len(served) - _NAMED} more" if len(served) > _NAMED else ""
    return f"no component in this namespace has that modelRef.name (found: {shown}{omitted})"


def _served(cache: Cache, namespace: str) -> Iterator[str]:
    """The base models that are served in the namespace."""
    for service in cache.list(ModelService, namespace):
        name = service.metadata.annotations.get(labels.BASE_MODEL, "")
        if name and service.metadata.name == names.model_service_name(name):
            yield name


def model_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake models when slices, pods or the Service of their base model, or models with their name, change."""

    def of_base(changed: Resource) -> Iterator[Key]:
        hash_ = changed.metadata.labels.get(labels.BASE_MODEL_HASH)
        for model in cache.list(DynamoModel, changed.metadata.namespace) if hash_ else ():
            if model.spec is not None and names.model_hash(model.spec.base_model_name) == hash_:
                yield model.key

    def without_endpoints(changed: ModelService) -> Iterator[Key]:
        for model in cache.list(DynamoModel, changed.metadata.namespace):
            if not model.status.total_endpoints:
                yield model.key

    def concerned(changed: DynamoModel) -> Iterator[Key]:
        models = siblings(changed, cache.list(DynamoModel, changed.metadata.namespace))
        yield from (model.key for model in models if concerns(changed, model))

    return (
        Watches(EndpointSlice, of_base),
        Watches(Pod, of_base),
        Watches(ModelService, without_endpoints),
        Watches(DynamoModel, concerned),
    )


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
        """The rate limit for such a status."""
        if len(status.endpoints) <= LARGE:
            return self.reporter.limit
        return self.tally_pace if changes_only_failures(model, status) else self.large_pace

    def _state(self, model: DynamoModel) -> KnownEndpoints:
        """The known state of the model's endpoints; read from the status if another client wrote that."""
        state = self.calls.state_of(model.key, model.metadata.uid)
        if state.written != _written(model):
            state.endpoints, state.written = remembered(model), _written(model)
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
        stored = await patch_status(self.reporter.writer, model, status, limit=self._pace(model, status))
        state.written = _written(stored)
        self._report(model, stored)
        return stored

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
