"""The annotation by which a user keeps the operator from writing anything for an object."""

from dynamo_graphs.api import labels
from kube_runtime.types.meta import Resource


def is_paused(resource: Resource) -> bool:
    """Whether nothing shall be written for the object."""
    return resource.metadata.annotations.get(labels.PAUSED) == "true"
