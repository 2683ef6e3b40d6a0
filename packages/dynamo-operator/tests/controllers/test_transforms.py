"""Of what is not ours the cache keeps the name and the owners."""

import msgspec

from dynamo_operator.reconcile.transforms import strip_unowned
from kube_runtime.types.core import Service
from kube_runtime.types.meta import Metadata, OwnerReference

SPEC = msgspec.Raw(b'{"clusterIP":"None"}')


def service(owner: str = "", **labels: str) -> Service:
    """A Service with a spec, owned by an object of that API version."""
    references = (OwnerReference("Kind", "o", "u", owner, controller=True),) if owner else ()
    return Service(Metadata("s", labels=labels, owner_references=references), SPEC)


def test_what_belongs_to_one_of_our_kinds_is_kept_whole() -> None:
    ours = service("nvidia.com/v1alpha1")
    assert ours is strip_unowned(ours)


def test_what_carries_our_marker_is_kept_whole() -> None:
    shared = service(**{"nvidia.com/managed-by": "dynamo-operator"})
    assert shared is strip_unowned(shared)


def test_of_others_the_metadata_stay() -> None:
    for theirs in (service(), service("apps/v1"), service("notnvidia.com/v1")):
        assert Service(theirs.metadata) == strip_unowned(theirs)


def test_a_change_of_what_is_not_read_is_no_change() -> None:
    theirs = service("apps/v1")
    other = msgspec.structs.replace(theirs, spec=msgspec.Raw(b"{}"))
    assert strip_unowned(theirs) == strip_unowned(other)


def test_the_copy_that_kubectl_leaves_in_an_annotation_is_not_kept() -> None:
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{}}'}
    theirs = Service(Metadata("s", annotations={**copy, "kept": "yes"}), SPEC)
    assert {"kept": "yes"} == strip_unowned(theirs).metadata.annotations
