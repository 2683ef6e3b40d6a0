"""What a model reads of the cluster, and which changes of it wake the model.

Everything that is read must wake a model, and little else: a namespace may have a thousand pods and a
hundred models, and pods that serve another base model do not concern it.
"""

from collections.abc import Iterator

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.plan.model import ModelInputs
from dynamo_graphs.plan.model_endpoints import has_endpoints, pod_names
from dynamo_graphs.plan.model_siblings import concerns, siblings
from dynamo_graphs.types.selected import ModelService
from dynamo_operator.lora.calls import KnownEndpoints, ModelCalls
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import Resource

SLICE_SELECTOR = labels.BASE_MODEL_HASH
"""Which EndpointSlices are watched, as a label selector: those of base models."""

_NAMED = 5


def read_model(
    cache: Cache, model: DynamoModel, known: KnownEndpoints, calls: ModelCalls
) -> ModelInputs:
    """What the decisions on the model depend on: what the cache has, and what is known of its endpoints."""
    namespace = model.metadata.namespace
    base_model = model.spec.base_model_name if model.spec else ""
    service = cache.get(ModelService, Key(namespace, names.model_service_name(base_model)))
    other = _other_model(service, base_model)
    slices = () if other else _slices(cache, namespace, base_model)
    recorded = (*known.endpoints.values(), *(each.endpoint for each in known.runs.values()))
    pods: dict[str, Pod] = {}
    for name in pod_names(slices) | {each.pod_name for each in recorded}:
        pod = cache.get(Pod, Key(namespace, name))
        if pod is not None:
            pods[name] = pod
    lack = ""
    if not has_endpoints(base_model, slices, pods.get):
        lack = _lack(cache, namespace, base_model, other=other, is_served=service is not None)
    return ModelInputs(
        now=calls.now(),
        slices=slices,
        siblings=siblings(model, cache.list(DynamoModel, namespace)),
        pods=pods,
        lack=lack,
        recorded=known.endpoints,
        running={place: run.view for place, run in known.runs.items()},
        silence=calls.silence,
        room=calls.at_once,
    )


def _slices(cache: Cache, namespace: str, base_model: str) -> tuple[EndpointSlice, ...]:
    """The slices of the base model."""
    hash_ = names.model_hash(base_model)
    return tuple(
        each
        for each in cache.list(EndpointSlice, namespace)
        if each.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_
    )


def _other_model(service: ModelService | None, base_model: str) -> str:
    """The base model whose name has the same hash, if that is the one that is served; else ""."""
    named = service.metadata.annotations.get(labels.BASE_MODEL) if service else None
    return named if named is not None and named != base_model else ""


def _lack(cache: Cache, namespace: str, base_model: str, *, other: str, is_served: bool) -> str:
    """Why there are no endpoints, as far as can be seen in the cache."""
    if other:
        return f"its hash collides with that of {other}, which is served here: rename one of them"
    if is_served:
        hash_ = names.model_hash(base_model)
        pods = cache.list(Pod, namespace)
        count = sum(each.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_ for each in pods)
        if count:
            return f"its components have {count} pod(s), none with an address yet"
        return "its components have no pods"
    served = sorted(_served(cache, namespace))
    if not served:
        return "no component in this namespace has a modelRef"
    known = ", ".join(served[:_NAMED])
    more = f" and {len(served) - _NAMED} more" if len(served) > _NAMED else ""
    return f"no component in this namespace has that modelRef.name (found: {known}{more})"


def _served(cache: Cache, namespace: str) -> Iterator[str]:
    """The base models that are served in the namespace."""
    for each in cache.list(ModelService, namespace):
        name = each.metadata.annotations.get(labels.BASE_MODEL, "")
        if name and each.metadata.name == names.model_service_name(name):
            yield name


def model_watches(cache: Cache) -> tuple[Watches, ...]:
    """What wakes models: slices and pods of their base model, its Service, models that share a name."""

    def of_base(changed: Resource) -> Iterator[Key]:
        hash_ = changed.metadata.labels.get(labels.BASE_MODEL_HASH)
        for each in cache.list(DynamoModel, changed.metadata.namespace) if hash_ else ():
            if each.spec is not None and names.model_hash(each.spec.base_model_name) == hash_:
                yield each.key

    def without_endpoints(changed: ModelService) -> Iterator[Key]:
        for each in cache.list(DynamoModel, changed.metadata.namespace):
            if not each.status.total_endpoints:
                yield each.key

    def concerned(changed: DynamoModel) -> Iterator[Key]:
        others = siblings(changed, cache.list(DynamoModel, changed.metadata.namespace))
        yield from (each.key for each in others if concerns(changed, each))

    return (
        Watches(EndpointSlice, of_base),
        Watches(Pod, of_base),
        Watches(ModelService, without_endpoints),
        Watches(DynamoModel, concerned),
    )
