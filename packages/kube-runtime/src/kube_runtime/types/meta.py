"""What every watched object has: metadata, owners, conditions."""

from collections.abc import Iterable
from typing import ClassVar, Self, TypeVar, dataclass_transform

import msgspec

from kube_runtime.kind import Key, Kind, Object


# msgspec passes `frozen` on to subclasses; type checkers learn of that only here.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every struct that comes from the API server; wire names are camelCase."""


class OwnerReference(Struct):
    """One entry of `metadata.ownerReferences`."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(Struct):
    """The part of ObjectMeta that we read; without `managedFields`, but for `ScaledMetadata`."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if it has one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class _OwnedSpec(Struct):
    replicas: Object | None = msgspec.field(name="f:replicas", default=None)


class _Owned(Struct):
    spec: _OwnedSpec = msgspec.field(name="f:spec", default=_OwnedSpec())


class FieldOwner(Struct):
    """One entry of `metadata.managedFields`, as far as it is about the replicas."""

    manager: str = ""
    time: str | None = None
    fields_v1: _Owned | None = None

    @property
    def owns_replicas(self) -> bool:
        """Whether `spec.replicas` is among the fields."""
        return self.fields_v1 is not None and self.fields_v1.spec.replicas is not None


class ScaledMetadata(Metadata):
    """Metadata of kinds with a scale subresource, with who set `spec.replicas`: no request is needed for it.

    Nothing else is read of `managedFields`.
    """

    managed_fields: tuple[FieldOwner, ...] = ()

    @property
    def replicas_set_by(self) -> str:
        """The field manager that set `spec.replicas` last; "" when there is none."""
        owners = [owner for owner in self.managed_fields if owner.owns_replicas]
        return max(owners, key=lambda owner: owner.time or "").manager if owners else ""


class Resource(Struct):
    """An object of a watched kind. A subclass names its kind and declares the fields that we read."""

    KIND: ClassVar[Kind]
    METADATA_ONLY: ClassVar[bool] = False
    """Whether the API server shall leave out everything but the metadata when it lists and watches."""
    READ_LEVELS: ClassVar[int | None] = None
    """How deep the fields are that we read; the object itself is level 1. An object that is nested too deeply
    for the decoder is then read down to here. None: such an object cannot be read."""

    metadata: Metadata = Metadata()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)


R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class Condition(Struct):
    """One condition of a status. `last_transition_time` is RFC 3339, UTC, in whole seconds."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class Status(Struct):
    """The status of a kind that has conditions. A subclass declares what else is reported."""

    conditions: tuple[Condition, ...] = ()

    def with_conditions(self, conditions: Iterable[Condition]) -> Self:
        """The same with these conditions instead, and with what a schema requires of every status."""
        return msgspec.structs.replace(self, conditions=tuple(conditions))


def status_of(resource: Resource) -> Status:
    """The status of an object.

    Raises:
        TypeError: its kind has none with conditions.
    """
    status = getattr(resource, "status", None)
    if not isinstance(status, Status):
        raise TypeError(f"{resource.KIND.name}: has no status with conditions")
    return status


def condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((candidate for candidate in conditions if candidate.type == type_), None)


def equal_but_for_version(old: Resource, new: Resource) -> bool:
    """Whether two states of an object differ in nothing that we read.

    The resource version is left out: the API server raises it for changes that we do not decode.
    """
    version = old.metadata.resource_version
    metadata = msgspec.structs.replace(new.metadata, resource_version=version)
    return msgspec.structs.replace(new, metadata=metadata) == old
