"""`dynamoctl apply`: a server-side apply of files, and waiting until what they ask for is ready."""

import asyncio
import sys
from collections.abc import Sequence

from dynamo_graphs.status.readiness import Stated, is_ready
from dynamoctl.cluster_options import Where
from dynamoctl.inspection import once_ready, print_explanation
from dynamoctl.manifests import manifests
from dynamoctl.resource_args import STATED
from dynamoctl.server_apply import applied, kind_of, placed
from dynamoctl.target import Cluster, Target, cluster
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.kind import key_of

_GOES_ON = "stopped waiting; the objects stay, and the operator continues: dynamoctl get --watch"

_TYPES = {each.KIND.name: each for each in STATED}


def print_applied(
    files: Sequence[str], where: Where, *, force: bool, wait: bool, timeout_seconds: float
) -> ExitCode:
    """Apply the objects in their order and print what became of each; 1 if they are not ready in time.

    Raises: OperatorError, or a group of ConfigError. What was applied before an error stays.
    """
    return asyncio.run(_apply(files, where, force, wait, timeout_seconds))


async def _apply(
    files: Sequence[str],
    where: Where,
    force: bool,
    wait: bool,
    timeout_seconds: float,
) -> ExitCode:
    found = manifests(files)
    targets: list[Target[Stated]] = []
    async with cluster(where) as at:
        placed_bodies = []
        for manifest in found:  # all of them, before the first one is written
            kind = await kind_of(at.reading, manifest)
            placed_bodies.append((kind, placed(manifest, kind, where, at.namespace)))
        for kind, body in placed_bodies:
            key = key_of(body)
            done = await applied(at.reading, kind, body, force=force)
            print(visible(f"{kind.name} {key} {done.verb}"), flush=True)
            if kind.name in _TYPES:
                targets.append(Target(at.reading, _TYPES[kind.name], key))
        if not wait:
            return ExitCode.OK
        return await _ready(at, targets, timeout_seconds)


async def _ready(
    at: Cluster, targets: Sequence[Target[Stated]], timeout_seconds: float
) -> ExitCode:
    try:
        async with asyncio.timeout(timeout_seconds):
            for each in targets:
                await once_ready(each, "text")
    except asyncio.CancelledError:  # Ctrl-C
        print(_GOES_ON, file=sys.stderr)
        raise
    except TimeoutError:
        late = [await each.found() for each in targets]
        print(f"error: not ready within {timeout_seconds:g} s", file=sys.stderr)
        for stated in late:
            if not is_ready(stated):
                await print_explanation(at.reading, stated)
        return ExitCode.PROBLEMS
    return ExitCode.OK
