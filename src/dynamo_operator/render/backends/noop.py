"""No framework that we know: the container stays as the user wrote it."""

from dynamo_operator.kube.kind import Object
from dynamo_operator.render.seams import ComponentPlan


def container(
    container: Object,
    plan: ComponentPlan,  # noqa: ARG001  # the shape of a backend
) -> Object:
    """The container as it is."""
    return container
