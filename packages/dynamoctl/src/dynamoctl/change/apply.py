"""`dynamoctl apply`: server-side apply of objects of any kind, and waiting until they are ready."""

import asyncio
import re
import sys
from collections.abc import Sequence

from dynamo_graphs import AsyncCluster
from dynamo_graphs.changes import applied
from dynamo_graphs.explanation import explained
from dynamo_graphs.reader import STATED, Reading, Target
from dynamo_operator.shared.conditions import Stated, is_ready
from dynamo_operator.shared.problems import later_version
from dynamoctl.authoring.render import Manifest
from dynamoctl.inspect.tree import follow
from dynamoctl.inspect.why import print_explanation
from dynamoctl.options import Where
from dynamoctl.target import cluster
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.errors import ConfigError, ConfigErrors, NotFound
from kube_runtime.types.meta import Kind, Object, key_of

_VERSION = re.compile(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[a-z0-9]+")
_PATH_SEGMENT = re.compile(r"(?!\.{1,2}$)[^/%?#\s]+")
"""What may be a name in a URL; with anything else the request would be about another object."""


async def bodies_of(
    manifests: Sequence[Manifest], at: AsyncCluster, where: Where
) -> list[tuple[Kind, Object]]:
    """The objects with their kinds, each in its namespace.

    Raises: ConfigErrors, one for each object of a kind that is not served, or of a namespace
        other than that of the command line.
    """
    bodies: list[tuple[Kind, Object]] = []
    mistakes: list[ConfigError] = []
    for manifest in manifests:
        try:
            kind = await _kind_of(at.reading, manifest)
            in_namespace = kind.namespaced and manifest.placed(where.namespace, at.namespace)
            bodies.append((kind, in_namespace or manifest.value))
        except ConfigError as error:
            mistakes.append(error)
    if mistakes:
        raise ConfigErrors("manifests", mistakes)
    return bodies


async def _kind_of(reading: Reading, manifest: Manifest) -> Kind:
    """Raises: ConfigError without apiVersion, kind or name, or if the cluster does not serve the kind."""
    value = manifest.value
    version, name = value.get("apiVersion"), value.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        raise manifest.problem("kind", "missing (expected an object with apiVersion and kind)")
    if not _VERSION.fullmatch(version):
        raise manifest.problem("apiVersion", f'invalid value "{version}" (for example apps/v1)')
    if not isinstance(manifest.metadata.get("name"), str):
        raise manifest.problem("metadata.name", "missing")
    for field in ("name", "namespace"):
        text = manifest.metadata.get(field)
        if isinstance(text, str) and not _PATH_SEGMENT.fullmatch(text):
            raise manifest.problem(f"metadata.{field}", f'invalid {field} "{text}"')
    group, _, plain = version.rpartition("/")
    path = ("apis", group, plain) if group else ("api", plain)
    try:
        resources = (await reading.client.get_json(*path))["resources"]
    except NotFound:
        resources = []
        if problem := later_version(value):
            raise manifest.problem(problem.path, problem.message) from None
    for resource in resources:
        if resource["kind"] == name and "/" not in resource["name"]:
            return Kind(group, plain, name, resource["name"], namespaced=resource["namespaced"])
    raise manifest.problem("kind", f"{version} {name} is not served by the cluster")


_GOES_ON = "stopped waiting; the objects stay, and the operator continues: dynamoctl get --watch"

_TYPES = {type_.KIND.name: type_ for type_ in STATED}


async def print_applied(
    manifests: Sequence[Manifest], where: Where, *, force: bool, wait: bool, timeout_seconds: float
) -> ExitCode:
    """Apply the objects in order and print the effect on each; 1 if they are not ready in time.

    Raises: OperatorError, or a group of ConfigError. Objects applied before an error stay.
    """
    targets: list[Target[Stated]] = []
    async with cluster(where) as at:
        bodies = await bodies_of(manifests, at, where)  # all, before the first one is written
        for kind, body in bodies:
            key = key_of(body)
            done = await applied(at.reading, kind, body, force=force)
            print(visible(f"{kind.name} {key} {done.verb}"), flush=True)
            if kind.name in _TYPES:
                targets.append(Target(at.reading, _TYPES[kind.name], key))
        if not wait:
            return ExitCode.OK
        return await _ready(targets, timeout_seconds)


async def _ready(targets: Sequence[Target[Stated]], timeout_seconds: float) -> ExitCode:
    try:
        async with asyncio.timeout(timeout_seconds):
            for target in targets:
                await follow(target, "text")
    except asyncio.CancelledError:  # Ctrl-C
        print(_GOES_ON, file=sys.stderr)
        raise
    except TimeoutError:
        late = [(target, await target.get()) for target in targets]
        print(f"error: not ready within {timeout_seconds:g} s", file=sys.stderr)
        for target, stated in late:
            if not is_ready(stated):
                print_explanation(await explained(target.reading, stated))
        return ExitCode.PROBLEMS
    return ExitCode.OK
