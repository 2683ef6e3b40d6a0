"""What a JSON schema cannot express: duplicate list keys, and rules over several fields."""

import sys
from collections.abc import Hashable, Iterator

from dynamo_graphs.api.component import DisruptionBudget
from dynamo_graphs.api.graph import PersistentVolumeClaimSpec
from dynamo_graphs.validation import Problem, ProblemKind, dotted
from dynamo_graphs.validation.schema.wording import joined
from kube_runtime.crd.declare import Rule
from kube_runtime.kind import Object

RULES: dict[str, Rule] = {
    rule.expression: rule for rule in (*DisruptionBudget.RULES, *PersistentVolumeClaimSpec.RULES)
}
"""The rules of all kinds by their expression in the schema."""

_HASH_MODULUS = sys.hash_info.modulus


def problems_beyond(
    value: object, schema: Object, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Duplicate list keys and broken rules, in a value and all that it holds."""
    if isinstance(value, list) and "items" in schema:
        yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from problems_beyond(item, schema["items"], (*path, index))
    elif isinstance(value, dict):
        for rule in schema.get("x-kubernetes-validations", ()):
            declared = RULES.get(
                rule["rule"]
            )  # others are about changes, and there is no state before
            if declared is not None and not declared.holds(value):
                yield Problem(dotted(path), rule["message"], ProblemKind.INVALID)
        for name, field in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from problems_beyond(field, inner, (*path, name))


def _duplicates(
    items: list[object], schema: Object, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """One problem for each item of a keyed list or a set that was there before."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys is None and schema.get("x-kubernetes-list-type") != "set":
        return
    seen = set[Hashable]()
    for index, item in enumerate(items):
        if keys is None:
            identity, text = item, f'duplicate entry "{item}"'
        elif isinstance(item, dict):
            identity = [item.get(key) for key in keys]
            named = joined([f"{key} {item.get(key)}" for key in keys], "and", quote="")
            text = f"duplicate entry with {named}"
        else:
            continue
        form = _hashable(identity)
        if form in seen:
            yield Problem(dotted((*path, index)), text, ProblemKind.DUPLICATE)
        seen.add(form)


def _hashable(value: object) -> Hashable:
    """A form that is equal for equal values; large integers as text, since many may share one hash."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(field)) for name, field in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return str(value) if isinstance(value, int) and abs(value) >= _HASH_MODULUS else value
