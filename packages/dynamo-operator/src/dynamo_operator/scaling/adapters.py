"""Write a graph's scaling adapters as planned by `dynamo_graphs.plan.adapters`.

`spec.replicas` belongs to the client that scales: it is set when the adapter is created and never written
again. So the Applier cannot write adapters: server-side apply removes a field that was applied once and
then left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_graphs.plan.adapters import AdapterPlan
from dynamo_operator.scaling.read import AdapterInputs
from kube_runtime.apply.ownership import controller_reference
from kube_runtime.apply.result import (
    Applied,
    Attempt,
    Blocked,
    Cause,
    Change,
    Obstacle,
    Obstructed,
    Verb,
    apply_each,
    controls,
    merge,
    name_conflict,
    stopped,
)
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Refused, ServerFailure
from kube_runtime.kind import Object, key_of


@dataclass(frozen=True, slots=True)
class _Orphaned(Change):
    """The deletion of the adapter of a removed service."""

    service: str = ""

    @property
    def reason(self) -> str:
        return "AdapterDeleted"

    @property
    def message(self) -> str:
        return f"Deleted orphaned scaling adapter {self.name} for removed service {self.service}"


async def apply_adapters(
    graph: DynamoGraphDeployment,
    plan: AdapterPlan,
    inputs: AdapterInputs,
    writer: Writer,
    suppression: WriteSuppression,
) -> Applied:
    """Create missing adapters, correct our fields of the others, and delete orphans.

    Raises:
        Conflict: another client has created or changed one; the caller retries at once.
        OperatorError: the API server could not be reached or failed.
    """
    owners = {"ownerReferences": [controller_reference(graph)]}
    desired = [{**body, "metadata": body["metadata"] | owners} for body in plan.desired]
    attempt = partial(_attempt, graph, inputs, writer, suppression)
    created = await apply_each(desired, (Adapter,), attempt)
    parts = [created]
    if plan.orphans:
        await writer.ensure_newest(graph)
    for adapter in plan.orphans:
        try:
            await writer.delete(adapter)
        except (Refused, ServerFailure) as error:
            parts.append(stopped(adapter.KIND.name, adapter.metadata.name, error))
        else:
            parts.append(Applied(changes=(_deletion(graph, adapter),)))
    return merge(parts)


async def _attempt(
    graph: DynamoGraphDeployment,
    inputs: AdapterInputs,
    writer: Writer,
    suppression: WriteSuppression,
    attempt: Attempt,
) -> None:
    desired, type_ = attempt.desired, Adapter
    key = key_of(desired)
    live = inputs.present.get(key.name)
    if live is None and (error := inputs.unreadable.get(key.name)):
        text = f"cannot read {type_.KIND.name} {key.name}: {error.message}"
        raise Obstructed(Blocked(Obstacle.REJECTED, type_.KIND.name, key.name, text))
    if live is None:
        target = Target(graph.metadata.uid, type_.KIND.name, key)
        with suppression.suppressing_repeats(target, digest_of(desired), ""):
            attempt.present = await writer.create(type_, desired)
        attempt.verb, attempt.cause = Verb.CREATE, Cause.ABSENT
    elif not controls(graph, live):
        raise Obstructed(name_conflict(live, graph))
    elif live.metadata.deletion_timestamp:
        return  # its deletion wakes the graph, which recreates it
    elif patch := _correction(live, desired):
        attempt.present = live
        attempt.present = await writer.merge_patch(type_, live.key, patch, uid=live.metadata.uid)
        attempt.verb, attempt.cause = Verb.UPDATE, Cause.INPUTS
    else:
        attempt.present = live


def _correction(live: Adapter, desired: Object) -> Object:
    """The patch of our fields of an adapter, labels and target; empty if they are correct."""
    patch: Object = {}
    ours: Mapping[str, str] = desired["metadata"]["labels"]
    if not ours.items() <= live.metadata.labels.items():
        patch["metadata"] = {"labels": ours}
    if live.spec is None:
        patch["spec"] = desired["spec"]
    elif msgspec.to_builtins(live.spec.dgd_ref) != desired["spec"]["dgdRef"]:
        patch["spec"] = {"dgdRef": desired["spec"]["dgdRef"]}
    return patch


def _deletion(graph: DynamoGraphDeployment, adapter: Adapter) -> Change:
    kind, name = adapter.KIND.name, adapter.metadata.name
    service = adapter.spec.dgd_ref.service_name if adapter.spec else ""
    if not service or service in graph.spec.services:
        return Change(Verb.DELETE, kind, name, Cause.UNWANTED)
    return _Orphaned(Verb.DELETE, kind, name, Cause.UNWANTED, service)
