"""What is remembered of objects that are not ours: that they are there, and whose they are.

A cluster has thousands of Services and Deployments that have nothing to do with us. We need them only to see
that a name is taken, so their specs and statuses are dropped before they are stored, with the copy of them
that `kubectl apply` leaves in an annotation, and their changes wake no key.
"""

from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import GROUP
from kube_runtime.types.meta import R

_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
OPERATOR = "dynamo-operator"
"""The value of our marker labels."""


def strip_unowned(each: R) -> R:
    """The object as it is if one of our kinds owns it or it has our marker, else its metadata alone."""
    owners = each.metadata.owner_references
    if any(owner.api_version.partition("/")[0] == GROUP for owner in owners):
        return each
    if any(each.metadata.labels.get(marker) == OPERATOR for marker in _MARKERS):
        return each
    annotations = {k: v for k, v in each.metadata.annotations.items() if k != _COPY}
    return type(each)(metadata=replace(each.metadata, annotations=annotations))
