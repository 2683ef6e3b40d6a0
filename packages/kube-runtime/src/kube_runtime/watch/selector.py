"""Select the objects of a watch by namespace, labels and fields.

The API server selects. For an object that we have just written, the store must know whether the watch will
bring it. So label selectors are parsed, and unsupported ones are refused. Field selectors are not parsed:
such an object is shown once the watch brings it.
"""

from dataclasses import dataclass, field
from typing import TypedDict

from kube_runtime.types.meta import Resource


class SelectorQuery(TypedDict):
    """The arguments of `Client.pages` and `Client.watch`."""

    namespace: str
    labels: str
    fields: str


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One requirement of a label selector; a value of None matches any."""

    name: str
    value: str | None
    is_negated: bool

    def holds(self, labels: dict[str, str]) -> bool:
        """Whether labels meet the requirement."""
        value = labels.get(self.name)
        matches = value is not None if self.value is None else value == self.value
        return matches is not self.is_negated


@dataclass(frozen=True, slots=True)
class Selector:
    """A namespace ("" for all), a label selector and a field selector.

    Raises:
        ValueError: the label selector has terms other than `a=b`, `a!=b`, `a` and `!a`.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    rules: tuple[LabelRule, ...] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.labels.split(",") if self.labels else ()
        object.__setattr__(self, "rules", tuple(map(_rule, terms)))

    def query(self) -> SelectorQuery:
        """The arguments for `Client.pages` and `Client.watch`."""
        return {"namespace": self.namespace, "labels": self.labels, "fields": self.fields}

    def covers(self, resource: Resource, *, is_watched: bool) -> bool:
        """Whether the watch will bring this state of an object; `is_watched`: it brought an earlier one."""
        metadata = resource.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if self.fields and not is_watched:
            return False
        return all(rule.holds(metadata.labels) for rule in self.rules)


def _rule(term: str) -> LabelRule:
    text = term.strip()
    is_negated = "!=" in text or text.startswith("!")
    name, equals, value = (
        text.removeprefix("!").replace("!=", "=").replace("==", "=").partition("=")
    )
    name, value = name.strip(), value.strip()
    if not name or any(letter in name + value for letter in " ()=!"):
        raise ValueError(f"unsupported label selector {term!r}")
    return LabelRule(name, value if equals else None, is_negated)


EVERYTHING = Selector()
