"""SGLang: gets the address of its leader. On one node it needs nothing; a cache is found by its path."""

from dynamo_graphs.render.backends import noop
from dynamo_graphs.render.group import GroupNode, Part
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.launch import with_flags, without_probes
from kube_runtime.kind import Object

STARTS_LEADER_LAST = False
_PORT = 29500

container = noop.container
launch_volumes = noop.launch_volumes
# SGLang meets by PyTorch's TCPStore, whose clients wait for the leader for ten minutes and then retry.
leader_service = noop.leader_service


def launch(
    container: Object,
    plan: ComponentPlan,  # noqa: ARG001  # the shape of a backend
    node: GroupNode,
) -> Object:
    """The container with the group's address and size, and its own rank in it."""
    address = node.hosts.leader.followed_by(f":{_PORT}")
    flags: list[Part] = ["--dist-init-addr", address, "--nnodes", str(node.count)]
    started = with_flags(container, [*flags, "--node-rank", node.rank], "sglang")
    return started if node.is_leader else without_probes(started)
