"""How many GPUs each pod of a component gets.

Launches on several nodes are computed from this number. Users set it in four places: the short form or the
container's own resources, as a limit or as a request.
"""

from collections.abc import Iterator

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.resources import ResourceItem, Resources
from kube_runtime.kind import Fields
from kube_runtime.quantity import amount

GPU = "nvidia.com/gpu"


def gpus(spec: ComponentSpec) -> int:
    """The number of GPUs of one pod; 0 if there are none, or if resource claims provide them."""
    for value in _gpu_fields(spec):
        number = amount(value) if isinstance(value, str | int) else None
        if number is not None and number > 0:
            return int(number)
    return 0


def _gpu_fields(spec: ComponentSpec) -> Iterator[object]:
    """The GPU fields of the spec, highest precedence first."""
    short = spec.resources or Resources()
    limits, requests = short.limits or ResourceItem(), short.requests or ResourceItem()
    name = limits.gpu_type or requests.gpu_type or GPU
    yield from (limits.custom.get(name), requests.custom.get(name), limits.gpu, requests.gpu)
    main = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    resources: Fields = main.get("resources") or {}
    for side in ("limits", "requests"):
        yield (resources.get(side) or {}).get(name)
