"""Requests and limits of the main container.

Kubernetes cannot overcommit devices: a request for one needs an equal limit, and a limit alone counts as the
request too. So a device that stands under requests only is written on both sides, and a GPU request that
repeats the limit is left out, as the Go operator leaves it out: pods and template stay the same.
"""

from collections.abc import Mapping

from dynamo_graphs.api.component import ResourceItem, Resources
from dynamo_graphs.api.devices import GPU
from kube_runtime.kind import Object
from kube_runtime.quantity import amount


def resources(short: Resources | None) -> Object:
    """The user's resources in the terms of Kubernetes; {} if there are none."""
    if short is None:
        return {}
    requests, limits = short.requests or ResourceItem(), short.limits or ResourceItem()
    gpu = requests.gpu_type or limits.gpu_type or GPU
    upper = _side(limits, limits.gpu_type or requests.gpu_type or GPU)
    lower = _side(requests, gpu)
    if requests.gpu and gpu not in requests.custom and _is_amount(lower[gpu], upper.get(gpu)):
        del lower[gpu]
    sides: Object = {"requests": lower, "limits": upper, "claims": list(short.claims)}
    return {name: value for name, value in sides.items() if value}


def with_device_limits(requirements: Object) -> Object:
    """The resources with a limit for every device that is only requested."""
    requests: Mapping[str, object] = requirements.get("requests", {})
    limits: Mapping[str, object] = requirements.get("limits", {})
    missing = {
        name: value
        for name, value in requests.items()
        if name not in limits and cannot_be_overcommitted(name)
    }
    return {**requirements, "limits": {**limits, **missing}} if missing else requirements


def cannot_be_overcommitted(name: str) -> bool:
    """Whether Kubernetes demands that request and limit are equal: devices and huge pages."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return name.startswith("hugepages-") if is_native else not name.startswith("requests.")


def _is_amount(request: str, limit: str | None) -> bool:
    return limit is not None and (request == limit or amount(request) == amount(limit))


def _side(item: ResourceItem, gpu: str) -> dict[str, str]:
    fixed = {"cpu": item.cpu, "memory": item.memory, gpu: item.gpu}
    return {name: value for name, value in (fixed | item.custom).items() if value}
