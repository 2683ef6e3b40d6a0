"""SGLang: gets the address of its leader. On one node it needs nothing; a cache is found by its path."""

from dynamo_graphs.render.interfaces import Backend, ComponentPlan
from dynamo_graphs.render.launch import GroupNode, Part, with_flags, without_probes
from kube_runtime.kind import Object

_PORT = 29500


def _launch(container: Object, _plan: ComponentPlan, node: GroupNode) -> Object:
    """The container with the group's address and size, and its own rank in it."""
    address = node.hosts.leader.followed_by(f":{_PORT}")
    flags: list[Part] = ["--dist-init-addr", address, "--nnodes", str(node.count)]
    started = with_flags(container, [*flags, "--node-rank", node.rank], "sglang")
    return started if node.is_leader else without_probes(started)


# SGLang meets by PyTorch's TCPStore, whose clients wait for the leader for ten minutes and then retry.
BACKEND = Backend(_launch)
