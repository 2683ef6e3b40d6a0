"""How a vLLM command spreads a model over GPUs, from its parallelism flags."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from kube_runtime.kind import Fields

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
    """Over how many GPUs a model is cut, and how many copies of it there are."""

    cut: int = 1
    copies: int = 1


def mode(gpus: int, sizes: Parallelism) -> Mode:
    """How nodes with that many GPUs each share the work."""
    if gpus and sizes.cut > gpus:
        return Mode.RAY
    is_spread = gpus and sizes.cut * sizes.copies > gpus
    return Mode.DATA_PARALLEL if is_spread else Mode.ALONE


def parallelism(container: Fields) -> Parallelism:
    """The sizes in a container's command and arguments."""
    flags = _flags(container)
    return Parallelism(_size(flags, _TENSOR) * _size(flags, _PIPELINE), _size(flags, _DATA))


def _words(container: Fields) -> list[str]:
    """The words of command and arguments, whether they stand alone or inside a script."""
    texts = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [word.strip("'\"") for text in texts for word in text.split()]


def _flags(container: Fields) -> list[tuple[str, str]]:
    """The words that may be flags, each with the word that follows it."""
    pairs = pairwise([*_words(container), ""])
    return [pair for pair in pairs if pair[0].startswith(("-", "_"))]


def _size(flags: Sequence[tuple[str, str]], names: Sequence[str]) -> int:
    """The number that the first of these flags gives, as `--flag 2` or `--flag=2`; else 1."""
    for word, following in flags:
        flag, has_value, value = word.partition("=")
        number = value if has_value else following
        if flag.replace("_", "-") in names and _NUMBER.fullmatch(number):
            return int(number)
    return 1
