"""Which model owns a LoRA's name when several models of one base model want the same one.

A worker knows LoRAs by name only, so two models with one name would overwrite and unload each other's. When
the owner changes, a model that gives a name up forgets it, and the one that waited for it unloads what may
be there before it loads its own weights.
"""

from collections.abc import Iterable

from dynamo_graphs.api.model import DynamoModel, EndpointInfo


def wanted_name(model: DynamoModel) -> str:
    """The adapter that the model wants to have loaded; "" if it is on its way out, or no LoRA."""
    spec = model.spec
    if spec is None or spec.model_type != "lora" or model.metadata.deletion_timestamp:
        return ""
    return spec.model_name if spec.source is not None else ""


def siblings(model: DynamoModel, models: Iterable[DynamoModel]) -> tuple[DynamoModel, ...]:
    """The other models on the same base model in the same namespace."""
    spec = model.spec
    return tuple(
        each
        for each in models
        if spec is not None
        and each.spec is not None
        and each.metadata.uid != model.metadata.uid
        and each.metadata.namespace == model.metadata.namespace
        and each.spec.base_model_name == spec.base_model_name
    )


def holder(model: DynamoModel, others: Iterable[DynamoModel]) -> DynamoModel | None:
    """The model that has the adapter that this one wants. None means: it is this one's.

    Of several that want it, one that has it already keeps it; else the oldest gets it.
    """
    name = wanted_name(model)
    if not name:
        return None
    for other in sorted(others, key=_age):
        wants = wanted_name(other) == name
        if not wants and not other.metadata.deletion_timestamp and _holds(other, name):
            return other
        if wants and _claim(other, name) < _claim(model, name):
            return other
    return None


def names_of_others(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The adapters that other models want."""
    return frozenset(filter(None, map(wanted_name, others)))


def _claim(model: DynamoModel, name: str) -> tuple[bool, str, str]:
    """What decides between models, the smallest first."""
    return not _holds(model, name), *_age(model)


def _age(model: DynamoModel) -> tuple[str, str]:
    return model.metadata.creation_timestamp or "", model.metadata.uid


def _holds(model: DynamoModel, name: str) -> bool:
    status = model.status
    return any(_mentions(each, name) for each in (*status.endpoints, *status.former_endpoints))


def _mentions(endpoint: EndpointInfo, name: str) -> bool:
    return name in (endpoint.loaded_name, endpoint.tried_name, *endpoint.leftovers)


def concerns(changed: DynamoModel, other: DynamoModel) -> bool:
    """Whether what one model has or wants may be what the other waits for, or has to give up."""
    mine, theirs = wanted_name(changed), wanted_name(other)
    if theirs and (theirs == mine or _holds(changed, theirs)):
        return True
    return bool(mine) and _holds(other, mine)
