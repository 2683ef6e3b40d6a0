"""No framework that we know: the container stays as the user wrote it, on every node alike."""

from dynamo_graphs.render.group import GroupNode
from dynamo_graphs.render.interfaces import ComponentPlan, LeaderService
from kube_runtime.kind import Object

STARTS_LEADER_LAST = False


def container(
    container: Object,
    plan: ComponentPlan,  # noqa: ARG001  # the shape of a backend
) -> Object:
    """The container as it is."""
    return container


def launch(
    container: Object,
    plan: ComponentPlan,  # noqa: ARG001  # the shape of a backend
    node: GroupNode,  # noqa: ARG001
) -> Object:
    """The container as it is: how its processes find each other is the user's to say."""
    return container


def launch_volumes(plan: ComponentPlan) -> list[Object]:  # noqa: ARG001  # the shape of a backend
    """None."""
    return []


def leader_service(plan: ComponentPlan) -> LeaderService | None:  # noqa: ARG001
    """None: what the nodes need of each other is the user's to say."""
    return None
