"""Requests and limits of the main container.

The hard part is that Kubernetes cannot overcommit devices: a request for one needs an equal limit.
So a device that stands under requests only is written on both sides.
"""

from collections.abc import Mapping

from dynamo_operator.api.component import ResourceItem, Resources
from dynamo_operator.api.devices import GPU
from dynamo_operator.kube.kind import Object


def resources(wanted: Resources | None) -> Object:
    """The user's resources in the terms of Kubernetes; {} if there are none."""
    if wanted is None:
        return {}
    requests, limits = wanted.requests or ResourceItem(), wanted.limits or ResourceItem()
    found: Object = {
        "requests": _side(requests, requests.gpu_type or limits.gpu_type or GPU),
        "limits": _side(limits, limits.gpu_type or requests.gpu_type or GPU),
        "claims": list(wanted.claims),
    }
    return {name: value for name, value in found.items() if value}


def with_device_limits(wanted: Object) -> Object:
    """The resources with a limit for every device that is only requested."""
    requests: Mapping[str, object] = wanted.get("requests", {})
    limits: Mapping[str, object] = wanted.get("limits", {})
    missing = {
        name: value
        for name, value in requests.items()
        if name not in limits and cannot_be_overcommitted(name)
    }
    return {**wanted, "limits": {**limits, **missing}} if missing else wanted


def cannot_be_overcommitted(name: str) -> bool:
    """Whether Kubernetes demands that request and limit are equal: devices and huge pages."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return name.startswith("hugepages-") if is_native else not name.startswith("requests.")


def _side(item: ResourceItem, gpu: str) -> dict[str, str]:
    fixed = {"cpu": item.cpu, "memory": item.memory, gpu: item.gpu}
    return {name: value for name, value in (fixed | item.custom).items() if value}
