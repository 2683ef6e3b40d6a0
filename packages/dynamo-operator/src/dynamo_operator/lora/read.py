"""Read the inputs of a model from the cache, and map changes of them to models.

Every input must wake its models, and little else may: a namespace may have a thousand pods and a hundred
models, and pods of other base models do not concern a model.
"""

from collections.abc import Iterator

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.plan.model import ModelInputs, concerns, siblings
from dynamo_graphs.plan.model_endpoints import has_endpoints, pod_names
from dynamo_graphs.types.selected import ModelService
from dynamo_operator.lora.calls import KnownEndpoints, ModelCalls
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import R, Resource

SLICE_SELECTOR = labels.BASE_MODEL_HASH
"""Label selector of the watched EndpointSlices: those of base models."""

_NAMED = 5


def read_model(
    cache: Cache, model: DynamoModel, state: KnownEndpoints, calls: ModelCalls
) -> ModelInputs:
    """Read the inputs of a model's plan: the cached objects and the known state of its endpoints."""
    namespace = model.metadata.namespace
    base_model = model.spec.base_model_name if model.spec else ""
    service = cache.get(ModelService, Key(namespace, names.model_service_name(base_model)))
    colliding = _other_model(service, base_model)
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


def _other_model(service: ModelService | None, base_model: str) -> str:
    """The base model that the Service serves, if its name only has the same hash; else ""."""
    named = service.metadata.annotations.get(labels.BASE_MODEL) if service else None
    return named if named is not None and named != base_model else ""


def _lack(cache: Cache, namespace: str, base_model: str, *, colliding: str, is_served: bool) -> str:
    """Why the model has no endpoints, according to the cache."""
    if colliding:
        return (
            f"its hash collides with that of {colliding}, which is served here: rename one of them"
        )
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
