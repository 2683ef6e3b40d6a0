"""Managed rollouts: the revisions that exist, and the writes that rendering and apply do not do.

The order matters. The apply that no longer wants old components deletes them; only a later reconcile that
finds none of them writes the new hash on the graph, and only that counts as complete. So each step may be
repeated, and none can be skipped.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import workload_name
from dynamo_graphs.api.revision import is_managed
from dynamo_graphs.plan.revisions import Member, Revisions, members, revisions, unnoted
from dynamo_graphs.plan.rollout_plan import Rollout, plan_rollout
from dynamo_graphs.render.graph import component_object
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.rollout import rolling_update
from dynamo_graphs.types.grove import ReplicasSpec
from dynamo_operator.graph.snapshot import components_of
from dynamo_operator.reconcile.pods import PodIndex
from kube_runtime.apply.drift import content_of, has_no_drift
from kube_runtime.apply.result import Applied, Blocked, Change, Verb, rejected
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.errors import Forbidden, Invalid, NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.times import utc_now
from kube_runtime.types.core import Pod
from kube_runtime.types.meta import Resource

_BESIDE_PODS = frozenset(("autoscaling", "ingress", "replicas", "scalingAdapter"))
"""What a component may say differently and still have the same pods."""
_ENDED = frozenset(("Succeeded", "Failed"))
"""Phases of pods that hold nothing any more, although they are still there."""


class ComponentScale(Resource):
    """The scale subresource of a component. It is not a component, so it must not get into that store."""

    KIND = DynamoComponentDeployment.KIND

    spec: ReplicasSpec = ReplicasSpec()


def observed_revisions(
    graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings
) -> Revisions:
    """The generations of a graph, which is as the user wrote it."""
    components = [each for several in components_of(graph, cache).values() for each in several]
    asked = unnoted(graph, members(graph, components))
    unchanged = frozenset(each.name for each in asked if _is_unchanged(graph, each, settings))
    return revisions(graph, components, unchanged=unchanged)


def rolling_update_status(graph: DynamoGraphDeployment, rollout: Rollout) -> Object:
    """The part of a graph's status about its rollout, as it is now."""
    now = utc_now()
    found = rolling_update(graph, rollout, now)
    return {"rollingUpdate": msgspec.to_builtins(found)} if found else {}


def next_rollout(
    graph: DynamoGraphDeployment,
    found: Revisions,
    pods: PodIndex | None = None,
) -> Rollout:
    """The next step of the workers of a graph, whose services all have the replicas that are in force.

    None as `pods` means: pods are not watched, so those on their way out do not count.
    """
    leaving = _leaving(found.old, pods) if pods else {}
    return plan_rollout(graph, found, datetime.now(UTC), leaving=leaving)


async def carry_out(
    graph: DynamoGraphDeployment, rollout: Rollout, writer: Writer
) -> tuple[DynamoGraphDeployment, Applied]:
    """Give old components their number of replicas; when none is left, note on the graph what serves now.

    Returns:
        The graph as it is then, and what was done.
    """
    changes: list[Change] = []
    blocked: list[Blocked] = []
    kind = DynamoComponentDeployment.KIND.name
    for component, replicas in rollout.resized:
        # One that has never had a number has no scale subresource for the API server.
        has_scale = component.spec.replicas is not None
        try:
            await writer.merge_patch(
                ComponentScale if has_scale else DynamoComponentDeployment,
                component.key,
                {"spec": {"replicas": replicas}},
                subresource="scale" if has_scale else "",
                uid=component.metadata.uid,
            )
        except NotFound:
            continue  # its removal wakes us
        except (Invalid, Forbidden) as error:
            blocked.append(rejected(kind, f"{component.metadata.name}/scale", error))
        else:
            changes.append(Change(Verb.SCALE, kind, component.metadata.name))
    return await _noted(graph, rollout, writer), Applied((), tuple(changes), tuple(blocked))


def leaving_pod_watch(cache: Cache) -> Watches:
    """What wakes a graph when a pod of an old generation goes; its component says nothing of it.

    Only the last pods of a component count, so one with desired replicas wakes no key by its pods. That a
    pod is on its way out is not asked: one whose node is gone vanishes without having been.
    """

    def keys(pod: Pod) -> Iterator[Key]:
        component = cache.get(DynamoComponentDeployment, _component(pod))
        owner = component.metadata.controller if component else None
        if component and owner and component.spec.replicas == 0:
            graph = cache.get(DynamoGraphDeployment, Key(pod.metadata.namespace, owner.name))
            if graph and (is_managed(graph) or labels.WORKER_HASH in component.metadata.labels):
                yield graph.key

    return Watches(Pod, keys)


def _component(pod: Pod) -> Key:
    """The component of a pod of a Deployment: both have one name."""
    return Key(pod.metadata.namespace, pod.metadata.labels.get(labels.SELECTOR, ""))


def _leaving(old: Iterable[Member], pods: PodIndex) -> dict[str, int]:
    """The pods of old components that have not ended, those on their way out included, by component.

    Groups of pods are not counted: each is a workload of its own, whose name goes with its replica.
    """
    found = {}
    for each in old:
        namespace, workload = each.component.metadata.namespace, workload_name(each.name)
        of_it = pods.of_workload(namespace, workload)
        found[each.name] = sum(pod.status.phase not in _ENDED for pod in of_it)
    return found


async def _noted(
    graph: DynamoGraphDeployment, rollout: Rollout, writer: Writer
) -> DynamoGraphDeployment:
    """The graph with what serves now on it; without the note when its workers have left the generations."""
    serves, annotations = rollout.target_hash, graph.metadata.annotations
    if rollout.is_under_way or annotations.get(labels.CURRENT_WORKER_HASH, "") == serves:
        return graph
    if not serves and labels.WORKER_ROLLOUT not in annotations:
        return graph  # another client's annotation: a graph of another operator that was never managed here
    # The version: the answer must not bring a newer spec than the one that everything was made for.
    note = {
        "annotations": {labels.CURRENT_WORKER_HASH: serves or None},
        "resourceVersion": graph.metadata.resource_version,
    }
    return await writer.merge_patch(
        DynamoGraphDeployment, graph.key, {"metadata": note}, uid=graph.metadata.uid
    )


def _is_unchanged(graph: DynamoGraphDeployment, found: Member, settings: RenderSettings) -> bool:
    """Whether a component under its plain name says already what the graph says of its pods now.

    The API server may have filled in defaults further down, so there only what we want must be there.
    """
    if found.service not in graph.spec.services:
        return False
    wanted = component_object(graph, found.service, settings)
    fields = _fields(msgspec.convert(wanted, DynamoComponentDeployment))
    if fields != _fields(found.component):
        return False
    return has_no_drift(_about_pods(wanted), _about_pods(content_of(found.component)))


def _fields(component: DynamoComponentDeployment) -> frozenset[str]:
    """The fields of the spec that say something about pods."""
    return frozenset(msgspec.to_builtins(component.spec)) - _BESIDE_PODS


def _about_pods(component: Object) -> Object:
    spec = {name: each for name, each in component["spec"].items() if name not in _BESIDE_PODS}
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}
