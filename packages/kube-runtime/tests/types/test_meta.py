"""Metadata of objects: the controlling owner, and who set the replicas."""

from kube_runtime.types.meta import (
    FieldOwner,
    Metadata,
    OwnerReference,
    ScaledMetadata,
    _Owned,
    _OwnedSpec,
)

SETS = _Owned(_OwnedSpec({}))


def test_the_controller_is_one_of_the_owners() -> None:
    user, ours = (
        OwnerReference("Team", "a", "1"),
        OwnerReference("Graph", "b", "2", controller=True),
    )
    assert ours == Metadata(owner_references=(user, ours)).controller
    assert Metadata(owner_references=(user,)).controller is None


def test_the_last_manager_of_the_replicas_counts() -> None:
    before = FieldOwner("kubectl", "2026-01-01T00:00:00Z", SETS)
    last = FieldOwner("autoscaler", "2026-01-02T00:00:00Z", SETS)
    other = FieldOwner("labeller", "2026-01-03T00:00:00Z")
    assert "autoscaler" == ScaledMetadata(managed_fields=(last, before, other)).replicas_set_by
    assert "" == ScaledMetadata(managed_fields=(other,)).replicas_set_by
