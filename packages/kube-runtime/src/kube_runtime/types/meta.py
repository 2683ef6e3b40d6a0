"""What every watched object has: metadata, owners, conditions."""

from typing import ClassVar, TypeVar, dataclass_transform

import msgspec

from kube_runtime.kind import Key, Kind


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
    """The part of ObjectMeta that we read; `managedFields` is never decoded."""

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


class Resource(Struct):
    """An object of a watched kind. A subclass names its kind and declares the fields that we read."""

    KIND: ClassVar[Kind]
    METADATA_ONLY: ClassVar[bool] = False
    """Whether the API server shall leave out everything but the metadata when it lists and watches."""

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


def condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((each for each in conditions if each.type == type_), None)


def equal_but_for_version(old: Resource, new: Resource) -> bool:
    """Whether two states of an object differ in nothing that we read.

    The resource version is left out: the API server raises it for changes that we do not decode.
    """
    version = old.metadata.resource_version
    metadata = msgspec.structs.replace(new.metadata, resource_version=version)
    return msgspec.structs.replace(new, metadata=metadata) == old
