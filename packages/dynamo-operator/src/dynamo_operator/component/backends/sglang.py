"""SGLang: on several nodes it needs the address of its leader, on one node nothing."""

from dynamo_operator.component.launch import GroupNode, Word, with_flags, without_probes
from dynamo_operator.component.plan import Backend, ComponentPlan
from kube_runtime.types.meta import Object

_PORT = 29500


def _launch(container: Object, _plan: ComponentPlan, node: GroupNode) -> Object:
    address = node.hosts.leader.followed_by(f":{_PORT}")
    flags: list[Word] = ["--dist-init-addr", address, "--nnodes", str(node.count)]
    started = with_flags(container, [*flags, "--node-rank", node.rank], "sglang")
    return started if node.is_leader else without_probes(started)


# Workers need not wait: clients of PyTorch's TCPStore retry for ten minutes until the leader listens.
BACKEND = Backend(_launch)
