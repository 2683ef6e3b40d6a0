"""Read what the plan of a model depends on, and map changes of it to the models to reconcile."""

from collections.abc import Iterator

from dynamo_operator import labels, names
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.calls import KnownEndpoints, ModelCalls
from dynamo_operator.models.plan import ModelInputs, Unloading, concerns, endpoints, pod_names, siblings
from dynamo_operator.shared.cluster import ModelService
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.types.kinds import EndpointSlice, Pod
from kube_runtime.types.meta import Key, R, Resource

SLICE_SELECTOR = labels.BASE_MODEL_HASH
"""Label selector of the watched EndpointSlices: those of base models."""

_NAMED = 5


def read_model(cache: Cache, model: DynamoModel, state: KnownEndpoints, calls: ModelCalls) -> ModelInputs:
    """Read the cached objects and the known state of the model's endpoints; changes nothing."""
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
    lack = ""
    if colliding:
        lack = f"its hash collides with that of {colliding}, which is served here: rename one of them"
    elif not any(endpoints(base_model, slices, {}, pods.get)):
        lack = _lack(cache, namespace, base_model, is_served=service is not None)
    unloading = None
    if (task := state.unloading) is not None:
        has_result = task.done() and not task.cancelled() and task.exception() is None
        unloading = Unloading(task.done(), task.result() if has_result else 0)
    return ModelInputs(
        slices=slices,
        siblings=siblings(model, cache.list(DynamoModel, namespace)),
        pods=pods,
        lack=lack,
        recorded=state.endpoints,
        running={place: run.view for place, run in state.runs.items()},
        running_after_failure=sum(run.was_failing for run in state.runs.values()),
        unloading=unloading,
        silence=calls.silence,
        room=calls.at_once,
    )


def _of_base(cache: Cache, type_: type[R], namespace: str, base_model: str) -> Iterator[R]:
    hash_ = names.model_hash(base_model)
    for resource in cache.list(type_, namespace):
        if resource.metadata.labels.get(labels.BASE_MODEL_HASH) == hash_:
            yield resource


def _lack(cache: Cache, namespace: str, base_model: str, *, is_served: bool) -> str:
    if is_served:
        count = len(tuple(_of_base(cache, Pod, namespace, base_model)))
        pods = f"{count} pod(s), none with an address yet" if count else "no pods"
        return f"its components have {pods}"
    annotated = (
        (service.metadata.name, service.metadata.annotations.get(labels.BASE_MODEL, ""))
        for service in cache.list(ModelService, namespace)
    )
    served = sorted(base for name, base in annotated if base and name == names.model_service_name(base))
    if not served:
        return "no component in this namespace has a modelRef"
    shown = ", ".join(served[:_NAMED])
    omitted = f" and {len(served) - _NAMED} more" if len(served) > _NAMED else ""
    return f"no component in this namespace has that modelRef.name (found: {shown}{omitted})"


# Every input must wake its models, and little else may: a namespace may have a thousand pods and a
# hundred models, and pods of other base models do not concern a model.
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
