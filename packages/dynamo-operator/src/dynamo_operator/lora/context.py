"""The cluster state that a model reads, and the changes of it that requeue the model.

Every change of read state must requeue the model, and little else: a namespace may have a thousand pods
and a hundred models, and pods of another base model do not concern it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec
from dynamo_graphs.plan.lora_calls import Endpoint
from dynamo_graphs.plan.model_siblings import concerns, siblings
from dynamo_graphs.status.pods import is_ready, pod_report
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key
from kube_runtime.types.core import Pod, Service
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import Resource

SLICE_SELECTOR = labels.BASE_MODEL_HASH
"""Which EndpointSlices are watched, as a label selector: those of base models."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The part of the cache that one model reads."""

    cache: Cache
    namespace: str
    base_model: str

    def pod(self, name: str) -> Pod | None:
        """The pod of that name."""
        return self.cache.get(Pod, Key(self.namespace, name))

    def slices(self) -> tuple[EndpointSlice, ...]:
        """The EndpointSlices of the base model; none if its Service belongs to another one."""
        hash_ = names.model_hash(self.base_model)
        if self._other_model():
            return ()
        return tuple(
            each
            for each in self.cache.list(EndpointSlice, self.namespace)
            if each.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_
        )

    def lack(self) -> str:
        """Why there are no endpoints, from the cache."""
        if other := self._other_model():
            return (
                f"its hash collides with that of {other}, which is served here: rename one of them"
            )
        service = self.cache.get(Service, self._service_key())
        if service is None:
            served = sorted(self._served())
            if not served:
                return "no component in this namespace has a modelRef"
            known = ", ".join(served[:_NAMED])
            more = f" and {len(served) - _NAMED} more" if len(served) > _NAMED else ""
            return f"no component in this namespace has that modelRef.name (found: {known}{more})"
        count = sum(1 for _ in self._pods())
        if count:
            return f"its components have {count} pod(s), none with an address yet"
        return "its components have no pods"

    def ready_pods(self, endpoints: tuple[Endpoint, ...]) -> int:
        """Number of endpoints whose pods are ready."""
        found = {each.pod_name for each in endpoints}
        return sum(pod is not None and is_ready(pod) for pod in map(self.pod, found))

    def trouble(self, name: str, now: datetime) -> str:
        """Why a pod is not ready; "" if unknown."""
        pod = self.pod(name)
        found = pod_report(pod, now).blockage if pod is not None else None
        if found is None:
            return ""
        what = " ".join(filter(None, (found.container, found.word)))
        return f"{what}: {found.message}" if found.message else what

    def _service_key(self) -> Key:
        return Key(self.namespace, names.model_service_name(self.base_model))

    def _other_model(self) -> str:
        """The served base model whose name has the same hash, if there is one."""
        service = self.cache.get(Service, self._service_key())
        named = service.metadata.annotations.get(labels.BASE_MODEL) if service else None
        return named if named is not None and named != self.base_model else ""

    def _served(self) -> Iterator[str]:
        for each in self.cache.list(Service, self.namespace):
            name = each.metadata.annotations.get(labels.BASE_MODEL, "")
            if name and each.metadata.name == names.model_service_name(name):
                yield name

    def _pods(self) -> Iterator[Pod]:
        hash_ = names.model_hash(self.base_model)
        for each in self.cache.list(Pod, self.namespace):
            if each.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_:
                yield each


def model_context(cache: Cache, model: DynamoModel, spec: DynamoModelSpec) -> ModelContext:
    """The part of the cache that the model reads."""
    return ModelContext(cache, model.metadata.namespace, spec.base_model_name)


def model_watches(cache: Cache) -> tuple[Watches, ...]:
    """Watches of models: EndpointSlices, pods and Service of the base model, models that share a name."""

    def of_base(changed: Resource) -> Iterator[Key]:
        hash_ = changed.metadata.labels.get(labels.BASE_MODEL_HASH)
        for each in cache.list(DynamoModel, changed.metadata.namespace) if hash_ else ():
            if each.spec is not None and names.model_hash(each.spec.base_model_name) == hash_:
                yield each.key

    def without_endpoints(changed: Service) -> Iterator[Key]:
        if labels.BASE_MODEL_HASH not in changed.metadata.labels:
            return
        for each in cache.list(DynamoModel, changed.metadata.namespace):
            if not each.status.total_endpoints:
                yield each.key

    def concerned(changed: DynamoModel) -> Iterator[Key]:
        others = siblings(changed, cache.list(DynamoModel, changed.metadata.namespace))
        yield from (each.key for each in others if concerns(changed, each))

    return (
        Watches(EndpointSlice, of_base),
        Watches(Pod, of_base),
        Watches(Service, without_endpoints),
        Watches(DynamoModel, concerned),
    )
