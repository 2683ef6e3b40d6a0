"""The rules of a graph on Grove: names that do not meet, a queue that can be a label."""

from collections.abc import Iterator

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.grove_names import LEADER_SUFFIX, WORKER_SUFFIX, gang_names_of
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.syntax import is_label_value, not_a_label_value


def grove_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Problems of a graph because it is on Grove."""
    queue = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    if not is_label_value(queue):
        path = f"metadata.annotations[{labels.KAI_QUEUE}]"
        yield Problem(path, not_a_label_value(queue))
    yield from _clique_problems(graph)


def _clique_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Services whose cliques would have one name, as `w` on several nodes and `w-ldr` have."""
    users: dict[str, str] = {}
    for key, name in sorted(gang_names_of(graph).services.items()):
        multinode = graph.spec.services[key].multinode
        is_spread = multinode is not None and multinode.node_count > 1
        for suffix in (LEADER_SUFFIX, WORKER_SUFFIX) if is_spread else ("",):
            user = users.setdefault(f"{name}{suffix}", key)
            if user != key:
                message = f'"{user}" and "{key}" would both create a clique "{name}{suffix}"'
                yield Problem(f"spec.services.{key}", message, ProblemKind.DUPLICATE)
