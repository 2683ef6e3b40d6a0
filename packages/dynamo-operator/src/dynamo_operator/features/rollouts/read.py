"""What wakes a graph during a managed rollout, beside its components."""

from collections.abc import Iterator

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.rollouts.plan import is_managed
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.types.kinds import ControllerRevision, Pod
from kube_runtime.types.meta import Key


def history_watch() -> Watches:
    """Revisions wake no graph: its next reconcile recreates a missing one."""
    return Watches(ControllerRevision, lambda _: ())


def leaving_pod_watch(cache: Cache) -> Watches:
    """Wake a graph when a pod of an old revision is deleted: no status of a component changes then.

    Only the last pods of a component count, so pods of one with desired replicas wake no graph. A pod need
    not have been terminating: when its node is lost it vanishes at once.
    """

    def keys(pod: Pod) -> Iterator[Key]:
        # The Deployment of a component has the component's name.
        key = Key(pod.metadata.namespace, pod.metadata.labels.get(labels.SELECTOR, ""))
        component = cache.get(DynamoComponentDeployment, key)
        owner = component.metadata.controller if component else None
        if component and owner and component.spec.replicas == 0:
            graph = cache.get(DynamoGraphDeployment, Key(pod.metadata.namespace, owner.name))
            if graph and (is_managed(graph) or labels.WORKER_HASH in component.metadata.labels):
                yield graph.key

    return Watches(Pod, keys)
