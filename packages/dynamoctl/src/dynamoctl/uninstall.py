"""`dynamoctl uninstall`: removes the finalizers that nothing serves any more, and says what remains.

A DynamoModel keeps `nvidia.com/finalizer` while an adapter may be loaded; the Go operator put the same on
graphs and components. Once the operator is gone nothing removes it, and the object and its namespace hang in
deletion.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from dynamo_graphs.api.crd import RESOURCES
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.product import user_agent
from dynamo_operator.reconcile.finalizer import FINALIZER
from dynamoctl.cluster_options import Where
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.running import operators
from kube_runtime.client.connect import connect
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.errors import Forbidden, NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.types.admission import ValidatingWebhookConfiguration
from kube_runtime.types.coordination import Lease
from kube_runtime.types.meta import Resource

_ELECTION = Key("kube-system", "dynamo.nvidia.com")
_GROUP_SUFFIX = ".nvidia.com"


@dataclass(slots=True)
class _Found:
    """What there is of ours in a cluster."""

    held: list[Resource] = field(default_factory=list[Resource])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    unseen: list[str] = field(default_factory=list[str])


def uninstall(where: Where, *, is_dry: bool) -> ExitCode:
    """Remove our finalizers in a namespace, or in all; print what was done and what remains.

    Raises: OperatorError.
    """
    return asyncio.run(_uninstall(where, is_dry=is_dry))


async def _uninstall(where: Where, *, is_dry: bool) -> ExitCode:
    async with await connect(
        where.kubeconfig, where.context or None, user_agent=user_agent()
    ) as transport:
        reading = Reading(transport)
        if text := await _running(reading, where.namespace):
            print(visible(f"{'note' if is_dry else 'error'}: {text}"), file=sys.stderr)
            if not is_dry:
                return ExitCode.PROBLEMS
        found = await _found(reading, where.namespace)
        for each in found.held:
            if not is_dry:
                await _release(reading, each)
            _tell_release(each, is_dry=is_dry)
        for line in (*_remaining(found), *await _cluster_objects(reading)):
            print(visible(line))
        for kind in found.unseen:
            print(visible(f"note: you cannot list {kind}"), file=sys.stderr)
    return ExitCode.OK


async def _running(reading: Reading, namespace: str) -> str:
    """That an operator still acts there; "" if none is seen."""
    try:
        found = await operators(reading)
    except Forbidden:
        return ""
    for each in found:
        if not namespace or each.namespace in ("", namespace):
            return (
                f"an operator is still running in namespace {each.account.namespace} and would "
                "add its finalizer again; delete the models while it runs, so that it unloads "
                "LoRAs (kubectl delete dm --all --all-namespaces), then the operator (helm "
                "uninstall)"
            )
    return ""


async def _found(reading: Reading, namespace: str) -> _Found:
    found = _Found()
    for type_ in RESOURCES:
        try:
            every: Sequence[Resource] = await reading.all(type_, namespace=namespace)
        except NotFound:
            continue  # not installed
        except Forbidden:
            found.unseen.append(type_.KIND.plural)
            continue
        if every:
            found.counts[type_.KIND.name] = len(every)
        found.held += [each for each in every if FINALIZER in each.metadata.finalizers]
    return found


async def _release(reading: Reading, found: Resource) -> None:
    """Remove our finalizer from an object; those of others stay."""
    type_, uid = type(found), found.metadata.uid
    live: Resource | None = found
    while live is not None and live.metadata.uid == uid and FINALIZER in live.metadata.finalizers:
        others = [each for each in live.metadata.finalizers if each != FINALIZER]
        version = live.metadata.resource_version
        patch: Object = {"metadata": {"finalizers": others, "resourceVersion": version}}
        try:
            await reading.client.merge_patch(type_, live.key, patch, uid=uid)
        except NotFound:
            return
        live = await reading.one(type_, live.key)


def _tell_release(found: Resource, *, is_dry: bool) -> None:
    verb = "would remove" if is_dry else "removed"
    print(visible(f"{verb} the finalizer of {found.KIND.name} {found.key}"))
    if isinstance(found, DynamoModel):
        loaded = sum(bool(each.loaded_name or each.tried_name) for each in found.status.endpoints)
        if loaded:
            print(f"  {loaded} worker(s) keep its LoRA until they restart")


def _remaining(found: _Found) -> list[str]:
    if not found.counts:
        return ["no objects of Dynamo kinds remain"]
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(found.counts.items()))
    return [
        f"remaining: {counts}",
        "  their pods keep running; kubectl delete removes both, and PVCs without `retain`",
    ]


async def _cluster_objects(reading: Reading) -> list[str]:
    """What else remains, as far as it may be seen: webhooks that would refuse every write, the Lease."""
    found: list[str] = []
    try:
        for each in await reading.all(ValidatingWebhookConfiguration):
            if any(hook.name.endswith(_GROUP_SUFFIX) for hook in each.webhooks):
                name = each.metadata.name
                found.append(f"remaining: ValidatingWebhookConfiguration {name}")
                found.append("  without its operator it refuses writes of Dynamo kinds: delete it")
        if await reading.one(Lease, _ELECTION) is not None:
            found.append(f"remaining: Lease {_ELECTION.name} in namespace {_ELECTION.namespace}")
    except Forbidden as error:
        print(visible(f"note: {error}"), file=sys.stderr)
    return [
        *found,
        "CRDs are kept: deleting them deletes every object of their kinds",
    ]
