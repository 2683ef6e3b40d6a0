"""Metadata, owner references and conditions of objects, and the base classes of kinds."""

from collections.abc import Iterable
from typing import ClassVar, Self, TypeVar, cast, dataclass_transform

import msgspec

from kube_runtime.kind import Key, Kind, Object


# msgspec passes `frozen` on to subclasses, which type checkers do not know.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all structs of API objects; names on the wire are camelCase."""


class OwnerReference(Struct):
    """One entry of `metadata.ownerReferences`."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(Struct):
    """The part of ObjectMeta that is decoded. `ScaledMetadata` has `managedFields`, too."""

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
        """The controlling owner, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class _OwnedSpec(Struct):
    replicas: Object | None = msgspec.field(name="f:replicas", default=None)


class _Owned(Struct):
    spec: _OwnedSpec = msgspec.field(name="f:spec", default=_OwnedSpec())


class FieldOwner(Struct):
    """One entry of `metadata.managedFields`, with its ownership of `spec.replicas`."""

    manager: str = ""
    time: str | None = None
    fields_v1: _Owned | None = None

    @property
    def owns_replicas(self) -> bool:
        """Whether `spec.replicas` is among the fields."""
        return self.fields_v1 is not None and self.fields_v1.spec.replicas is not None


class ScaledMetadata(Metadata):
    """Metadata of a kind with a scale subresource, with the managers of `spec.replicas`."""

    managed_fields: tuple[FieldOwner, ...] = ()

    @property
    def replicas_set_by(self) -> str:
        """The field manager that set `spec.replicas` last; "" when there is none."""
        owners = [owner for owner in self.managed_fields if owner.owns_replicas]
        return max(owners, key=lambda owner: owner.time or "").manager if owners else ""


class Resource(Struct):
    """Base of all kinds. A subclass names its kind and declares the fields to decode."""

    KIND: ClassVar[Kind]
    METADATA_ONLY: ClassVar[bool] = False
    """Whether lists and watches request the metadata only."""
    READ_LEVELS: ClassVar[int | None] = None
    """How deep the fields are that we read; the object itself is level 1. An object that is nested too deeply
    for the decoder is then read down to here. None: such an object cannot be read."""

    metadata: Metadata = Metadata()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)


R = TypeVar("R", bound=Resource)


def metadata_type(type_: type[Resource]) -> type[Resource]:
    """A type of the same kind whose lists and watches request the metadata only."""
    reduced = msgspec.defstruct(
        f"{type_.__name__}Metadata",
        [],
        bases=(Resource,),
        namespace={"KIND": type_.KIND, "METADATA_ONLY": True},
        frozen=True,
        rename="camel",
    )
    return cast("type[Resource]", reduced)


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
    """Base of a status with conditions. A subclass declares its other fields."""

    conditions: tuple[Condition, ...] = ()

    def with_conditions(self, conditions: Iterable[Condition]) -> Self:
        """A copy with these conditions. Subclasses add what their schema requires."""
        return msgspec.structs.replace(self, conditions=tuple(conditions))


def status_of(resource: Resource) -> Status:
    """The status of an object.

    Raises:
        TypeError: its kind has no status with conditions.
    """
    status = getattr(resource, "status", None)
    if not isinstance(status, Status):
        raise TypeError(f"{resource.KIND.name}: has no status with conditions")
    return status


def condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((candidate for candidate in conditions if candidate.type == type_), None)


def equal_but_for_version(old: Resource, new: Resource) -> bool:
    """Whether two states of an object are equal except for the resource version.

    The API server raises the version also for changes of fields that are not decoded.
    """
    version = old.metadata.resource_version
    metadata = msgspec.structs.replace(new.metadata, resource_version=version)
    return msgspec.structs.replace(new, metadata=metadata) == old
