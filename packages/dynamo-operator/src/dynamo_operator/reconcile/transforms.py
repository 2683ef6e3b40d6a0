"""What is remembered of objects that are not ours: that they are there, and whose they are.

Watches select by label, and users may put the label on their objects. Of such an object the spec and the
status are dropped before it is stored, with the copy of them that `kubectl apply` leaves in an annotation,
and its changes wake no key. Of the PVCs of users it is all that is needed.
"""

from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import GROUP
from kube_runtime.types.meta import OwnerReference, R, Resource

_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)
_COPY = "kubectl.kubernetes.io/last-applied-configuration"


def is_controlled_by_us(resource: Resource) -> bool:
    """Whether one of our kinds controls the object."""
    controller = resource.metadata.controller
    return controller is not None and _is_of_our_group(controller)


def strip_unowned(resource: R) -> R:
    """The object as it is if one of our kinds owns it or it has our marker, else its metadata alone."""
    owners = resource.metadata.owner_references
    if any(map(_is_of_our_group, owners)):
        return resource
    if any(resource.metadata.labels.get(marker) == labels.MANAGER for marker in _MARKERS):
        return resource
    annotations = {k: v for k, v in resource.metadata.annotations.items() if k != _COPY}
    return type(resource)(metadata=replace(resource.metadata, annotations=annotations))


def _is_of_our_group(owner: OwnerReference) -> bool:
    return owner.api_version.partition("/")[0] == GROUP
