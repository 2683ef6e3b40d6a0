"""Who set `spec.replicas`, of kinds with a scale subresource.

It is the one thing that is read of `managedFields`, and it comes with every object, so it costs no request.
"""

import msgspec

from kube_runtime.kind import Object
from kube_runtime.types.meta import Metadata, Struct


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
    """Metadata with those who set the fields."""

    managed_fields: tuple[FieldOwner, ...] = ()

    @property
    def replicas_set_by(self) -> str:
        """The field manager that set `spec.replicas` last; "" when there is none."""
        owners = [each for each in self.managed_fields if each.owns_replicas]
        return max(owners, key=lambda each: each.time or "").manager if owners else ""
