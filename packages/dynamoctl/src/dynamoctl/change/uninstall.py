"""`dynamoctl install cleanup`: remove the finalizers of a removed operator, and list what remains.

A DynamoModel keeps `nvidia.com/finalizer` while a LoRA may be loaded; the Go operator also put it on graphs
and components. Without an operator nothing removes it, and the object and its namespace hang in deletion.
"""

import sys
from contextlib import suppress

from dynamo_graphs.ages import counted
from dynamo_graphs.leadership import ELECTION_LEASE
from dynamo_graphs.operators import operators
from dynamo_graphs.reader import Reading, StoredObject, retry_on_conflict, stored_type
from dynamo_operator.crds import RESOURCES
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel
from dynamoctl.options import Where
from dynamoctl.target import cluster
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import Forbidden, NotFound, visible
from kube_runtime.types.kinds import Lease, ValidatingWebhookConfiguration
from kube_runtime.types.meta import Object

_GROUP_SUFFIX = ".nvidia.com"


async def uninstall(where: Where, *, is_dry: bool) -> ExitCode:
    """Remove our finalizers in a namespace, or in all; print each, and what remains.

    Raises: OperatorError.
    """
    async with cluster(where) as at:
        reading = at.reading
        if text := await _running(reading, where.namespace):
            print(visible(f"{'note' if is_dry else 'error'}: {text}"), file=sys.stderr)
            if not is_dry:
                return ExitCode.PROBLEMS
        counts: list[str] = []
        unseen: list[str] = []
        held: list[StoredObject] = []
        for type_ in RESOURCES:
            try:
                every = await reading.all(stored_type(type_.KIND), namespace=where.namespace)
            except NotFound:
                continue  # not installed
            except Forbidden:
                unseen.append(type_.KIND.plural)
                continue
            if every:
                counts.append(f"{len(every)} {type_.KIND.name}")
            held += (it for it in every if FINALIZER in it.metadata.finalizers)
        for resource in held:
            if not is_dry:
                await _release(reading, resource)
            _print_release(resource, is_dry=is_dry)
        remaining = ["no objects of Dynamo kinds remain"]
        if counts:
            listing = ", ".join(sorted(counts, key=lambda count: count.split()[1]))
            consequence = (
                "their pods keep running; kubectl delete removes both, and PVCs that graphs do not retain"
            )
            remaining = [f"remaining: {listing}", f"  {consequence}"]
        for line in (*remaining, *await _cluster_objects(reading)):
            print(visible(line))
        for kind in unseen:
            print(visible(f"note: you cannot list {kind}"), file=sys.stderr)
    return ExitCode.OK


async def _running(reading: Reading, namespace: str) -> str:
    try:
        running = await operators(reading)
    except Forbidden:
        return ""
    for operator in running:
        if not namespace or operator.namespace in ("", namespace):
            return (
                f"an operator is still running in namespace {operator.account.namespace} and would "
                "add its finalizer again; delete the models while it runs, so that it unloads "
                "LoRAs (kubectl delete dm --all --all-namespaces), then the operator (helm "
                "uninstall)"
            )
    return ""


async def _release(reading: Reading, resource: StoredObject) -> None:
    type_, uid = type(resource), resource.metadata.uid

    async def release() -> None:
        live = await reading.one(type_, resource.key)
        if live is None or live.metadata.uid != uid or FINALIZER not in live.metadata.finalizers:
            return
        others = [finalizer for finalizer in live.metadata.finalizers if finalizer != FINALIZER]
        version = live.metadata.resource_version
        patch: Object = {"metadata": {"finalizers": others, "resourceVersion": version}}
        with suppress(NotFound):
            await reading.client.merge_patch(type_, live.key, patch, uid=uid)

    await retry_on_conflict(release)


def _print_release(resource: StoredObject, *, is_dry: bool) -> None:
    verb = "would remove" if is_dry else "removed"
    print(visible(f"{verb} the finalizer of {resource.KIND.name} {resource.key}"))
    status = resource.status if isinstance(resource.status, dict) else {}
    endpoints = status.get("endpoints") if resource.KIND == DynamoModel.KIND else None
    loaded = sum(
        isinstance(endpoint, dict) and bool(endpoint.get("loadedName") or endpoint.get("triedName"))
        for endpoint in (endpoints if isinstance(endpoints, list) else ())
    )
    if loaded:
        workers = f"{counted(loaded, 'worker')} {'keeps' if loaded == 1 else 'keep'}"
        print(f"  {workers} its LoRA until {'it restarts' if loaded == 1 else 'they restart'}")


async def _cluster_objects(reading: Reading) -> list[str]:
    """Lines about webhooks, which refuse every write now, and the Lease, if the user may read them."""
    lines: list[str] = []
    try:
        for configuration in await reading.all(ValidatingWebhookConfiguration):
            if any(hook.name.endswith(_GROUP_SUFFIX) for hook in configuration.webhooks):
                name = configuration.metadata.name
                lines.append(f"remaining: ValidatingWebhookConfiguration {name}")
                lines.append("  without its operator it refuses writes of Dynamo kinds: delete it")
        if await reading.one(Lease, ELECTION_LEASE) is not None:
            lines.append(f"remaining: Lease {ELECTION_LEASE.name} in namespace {ELECTION_LEASE.namespace}")
    except Forbidden as error:
        print(visible(f"note: {error}"), file=sys.stderr)
    return [*lines, "CRDs are kept: deleting them deletes every object of their kinds"]
