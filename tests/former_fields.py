"""Fields of v1alpha1 that v1beta1 does not have: an author of v1beta1 looks for them in vain."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from dynamo_operator.crds import LATER_RESOURCES, RESOURCES, whole_schema
from kube_runtime.types.meta import Object

_RESOURCES: Final = frozenset(("cpu", "memory"))
"""Names of resources, which are fields in v1alpha1 and keys in v1beta1."""

_STEP = r"[A-Za-z][A-Za-z0-9]*(?:\[[^\]]*\])?"
_PATH: Final = re.compile(rf"(?<![\w/.-]){_STEP}(?:\.{_STEP})+(?![\w/-])")
_SETTING: Final = re.compile(r"(?<=`)[A-Za-z]+(?=(?:: [^`]*)?`)")
_NAME: Final = re.compile(r"(?<![\w/.-])(?:[a-z]+(?:[A-Z][A-Za-z]*)+|pvcs|envs)(?![\w/-])")


def _steps(schema: Object, field: str = "") -> Iterator[str]:
    """Each field, and each with the one that it is in."""
    for name, inner in schema.get("properties", {}).items():
        if name not in _RESOURCES:
            yield from (name, f"{field}.{name}")
        yield from _steps(inner, name)
    for part in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(part), dict):
            yield from _steps(inner, field)


@cache
def _former_steps() -> frozenset[str]:
    kinds = {later.KIND.name for later in LATER_RESOURCES}
    former = {step for kind in RESOURCES if kind.KIND.name in kinds for step in _steps(whole_schema(kind))}
    return frozenset(former.difference(*(_steps(whole_schema(kind)) for kind in LATER_RESOURCES)))


def former_fields_in(text: str) -> list[str]:
    """Those that a text names: in a path, alone between backquotes, or by a name that is no English word."""
    paths = [re.findall(r"[A-Za-z0-9]+", re.sub(r"\[[^\]]*\]", "", path)) for path in _PATH.findall(text)]
    named = [*_steps_of(paths), *_SETTING.findall(text), *_NAME.findall(text)]
    return sorted(_former_steps().intersection(named))


def _steps_of(paths: Iterable[list[str]]) -> Iterator[str]:
    for path in paths:
        yield from path
        yield from map(".".join, pairwise(path))
