"""What the labels and the status of a pod say about it as an endpoint of a model.

A user who may write EndpointSlices can put any address into one, while only the kubelet reports a pod's
addresses. So an address counts only if the pod itself has it.
"""

from dynamo_graphs.api import labels
from dynamo_graphs.api.grove_names import WORKER_SUFFIX
from dynamo_graphs.types.grove import CLIQUE_NAME, REPLICA_INDEX
from dynamo_graphs.types.leaderworkerset import SET_NAME
from kube_runtime.types.core import Pod

READ_LABELS = (
    labels.BASE_MODEL_HASH,
    labels.COMPONENT_TYPE,
    labels.SUB_COMPONENT_TYPE,
    labels.ROLE,
    CLIQUE_NAME,
    REPLICA_INDEX,
)
"""What is read here of the pods that serve a base model."""


def is_follower(pod: Pod) -> bool:
    """Whether the pod serves together with a leader, which alone has an adapter API."""
    found = pod.metadata.labels
    if SET_NAME in found:
        return found.get(labels.ROLE) == "worker"
    return REPLICA_INDEX in found and found.get(CLIQUE_NAME, "").endswith(WORKER_SUFFIX)


def is_prefill(pod: Pod) -> bool:
    """Whether the pod only reads prompts, so that others answer for it."""
    kinds = (labels.COMPONENT_TYPE, labels.SUB_COMPONENT_TYPE)
    return "prefill" in (pod.metadata.labels.get(each) for each in kinds)


def has_address(pod: Pod, host: str) -> bool:
    """Whether that IP address is one of the pod's own."""
    return any(each.ip == host for each in pod.status.pod_ips)


def restarts(pod: Pod) -> int:
    """How often containers of the pod have been started again."""
    return sum(each.restart_count for each in pod.status.container_statuses)
