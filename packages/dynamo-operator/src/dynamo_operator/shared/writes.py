"""Writes as values, for what a decision writes beside the objects that it applies."""

from dataclasses import dataclass
from typing import TypeAlias

from kube_runtime.apply.result import Cause, Change, Verb
from kube_runtime.types.meta import Object, Resource


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an object. `checks_owner`: only if the cache has the newest state of its owner."""

    live: Resource
    change: Change
    checks_owner: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of an object, or of its subresource of type `type_`."""

    live: Resource
    body: Object
    change: Change
    type_: type[Resource]
    subresource: str = ""


Write: TypeAlias = Delete | Patch
"""A write beside the objects that an owner applies. A lost one is repeated by the next reconcile."""


def scaling(
    live: Resource, replicas: int, cause: Cause, type_: type[Resource], subresource: str = "scale"
) -> Patch:
    """Scale a live object. `type_` is the type of the subresource."""
    change = Change(Verb.SCALE, type_.KIND.name, live.metadata.name, f"{cause}: {replicas} replicas")
    return Patch(live, {"spec": {"replicas": replicas}}, change, type_, subresource)
