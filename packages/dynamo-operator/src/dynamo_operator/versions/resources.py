"""Resources: the items of a service in v1alpha1 and the quantities of a container."""

from typing import Final

from dynamo_operator.versions.quantities import canonical, is_quantity, text_of
from kube_runtime.types.meta import Object

_GPU: Final = "nvidia.com/gpu"
_AMOUNTS: Final = ("requests", "limits")
_NAMES: Final = {"cpu": "cpu", "memory": "memory", _GPU: "gpu"}


def container_resources(resources: Object) -> Object:
    """The resources of `main` that a service's resources stand for. A text of no quantity is left out."""
    result: Object = {}
    for amounts in _AMOUNTS:
        if quantities := _quantities(resources.get(amounts, {})):
            result[amounts] = quantities
    return _with_claims(result, resources)


def service_resources(resources: Object) -> Object:
    """The resources of a service that those of `main` stand for; empty if there are none."""
    result: Object = {}
    for amounts in _AMOUNTS:
        if quantities := resources.get(amounts):
            result[amounts] = _item(quantities)
    return _with_claims(result, resources)


def comparable_resources(resources: Object) -> Object:
    """A container's resources with their quantities in canonical form."""
    canonized: Object = {
        amounts: {name: canonical(quantity) for name, quantity in resources[amounts].items()}
        for amounts in _AMOUNTS
        if amounts in resources
    }
    return {**resources, **canonized}


def come_back(resources: Object | None) -> bool:
    """Whether a service's resources come back the same from a container that the Go operator writes."""
    if resources is None:
        return True
    written = comparable_resources(container_resources(resources))
    return bool(resources) and service_resources(written) == resources


def _quantities(item: Object) -> Object:
    texts: Object = {
        "cpu": item.get("cpu"),
        "memory": item.get("memory"),
        item.get("gpuType") or _GPU: item.get("gpu"),
        **item.get("custom", {}),
    }
    return {name: text for name, text in texts.items() if text is not None and is_quantity(text)}


def _item(quantities: Object) -> Object:
    item: Object = {}
    custom: Object = {}
    for name, quantity in quantities.items():
        place, key = (item, _NAMES[name]) if name in _NAMES else (custom, name)
        place[key] = text_of(quantity)
    return {**item, "custom": custom} if custom else item


def _with_claims(result: Object, resources: Object) -> Object:
    return {**result, "claims": resources["claims"]} if "claims" in resources else result
