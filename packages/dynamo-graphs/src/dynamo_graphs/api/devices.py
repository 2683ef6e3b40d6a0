"""The GPUs of each pod of a component, and how vLLM's parallelism flags spread a model over them.

Users set GPUs in four places: in the short form or in the container's resources, as a limit or as a request.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.component_fields import ResourceItem, Resources
from kube_runtime.kind import Fields
from kube_runtime.quantity import amount

GPU = "nvidia.com/gpu"


def gpus(spec: ComponentSpec) -> int:
    """The GPUs of one pod; 0 if there are none or if resource claims provide them."""
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


_TENSOR = ("--tensor-parallel-size", "-tp")
_PIPELINE = ("--pipeline-parallel-size", "-pp")
_DATA = ("--data-parallel-size", "-dp")
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


class Mode(Enum):
    """How the nodes of one replica share the work."""

    ALONE = "each node for itself"
    RAY = "one model over all nodes"
    DATA_PARALLEL = "copies of a model over all nodes"


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The GPUs that share one copy of the model (`cut`), and the number of copies."""

    cut: int = 1
    copies: int = 1


def mode(gpus: int, sizes: Parallelism) -> Mode:
    """Return how nodes with that many GPUs each share the work."""
    if gpus and sizes.cut > gpus:
        return Mode.RAY
    is_spread = gpus and sizes.cut * sizes.copies > gpus
    return Mode.DATA_PARALLEL if is_spread else Mode.ALONE


def parallelism(container: Fields) -> Parallelism:
    """Parse the parallelism flags in a container's command and arguments."""
    flags = _flags(container)
    return Parallelism(_size(flags, _TENSOR) * _size(flags, _PIPELINE), _size(flags, _DATA))


def _words(container: Fields) -> list[str]:
    """The words of command and arguments, also of those inside a script."""
    texts = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [word.strip("'\"") for text in texts for word in text.split()]


def _flags(container: Fields) -> list[tuple[str, str]]:
    """The words that may be flags, each with the word after it."""
    pairs = pairwise([*_words(container), ""])
    return [pair for pair in pairs if pair[0].startswith(("-", "_"))]


def _size(flags: Sequence[tuple[str, str]], names: Sequence[str]) -> int:
    """The number of the first of these flags, as `--flag 2` or `--flag=2`; 1 without it."""
    for word, following in flags:
        flag, has_value, value = word.partition("=")
        number = value if has_value else following
        if flag.replace("_", "-") in names and _NUMBER.fullmatch(number):
            return int(number)
    return 1
