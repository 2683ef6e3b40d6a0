"""Server-side apply of objects of any kind, as `kubectl apply --server-side` does it."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from dynamoctl.cluster_options import Where
from dynamoctl.edits import MANAGER
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.manifests import Manifest
from kube_runtime.client.requests import APPLY_PATCH
from kube_runtime.client.retry import once
from kube_runtime.client.transport import Request
from kube_runtime.errors import Conflict, NotFound
from kube_runtime.kind import Kind, Object, key_of

_KNOWN_LATER = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")
"""Metadata that the API server writes."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def kind_of(reading: Reading, manifest: Manifest) -> Kind:
    """The kind of an object, from the discovery of the cluster.

    Raises: ConfigError if the cluster does not serve it, or if there is no apiVersion, kind or name.
    """
    value = manifest.value
    version, name = value.get("apiVersion"), value.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        raise manifest.problem("kind", "missing (expected an object with apiVersion and kind)")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise manifest.problem("metadata.name", "missing")
    group, _, plain = version.rpartition("/")
    path = f"/apis/{group}/{plain}" if group else f"/api/{plain}"
    try:
        resources = (await reading.client.get_json(path))["resources"]
    except NotFound:
        resources = []
    for each in resources:
        if each["kind"] == name and "/" not in each["name"]:
            return Kind(group, plain, name, each["name"], namespaced=each["namespaced"])
    raise manifest.problem("kind", f"{version} {name} is not served by the cluster")


def placed(manifest: Manifest, kind: Kind, where: Where, namespace: str) -> Object:
    """The object with its namespace: its own, else that of the command line or of the context.

    Raises: ConfigError if it has another one than the command line.
    """
    value = manifest.value
    if not kind.namespaced:
        return value
    own = value["metadata"].get("namespace")
    if own and where.namespace and own != where.namespace:
        message = f'"{own}" does not match the namespace "{where.namespace}" of the command line'
        raise manifest.problem("metadata.namespace", message)
    return {**value, "metadata": {**value["metadata"], "namespace": own or namespace}}


@dataclass(frozen=True, slots=True)
class Applied:
    """An object after an apply, and what that did: `created`, `configured` or `unchanged`."""

    verb: Literal["created", "configured", "unchanged"]
    body: Object


async def applied(reading: Reading, kind: Kind, body: Object, *, force: bool) -> Applied:
    """Apply an object.

    Raises: as `server_apply`.
    """
    live = await reading.raw(kind, key_of(body))
    after = await server_apply(reading, kind, body, is_dry=False, force=force)
    if live is None:
        return Applied("created", after)
    versions = (live["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"])
    return Applied("unchanged" if versions[0] == versions[1] else "configured", after)


async def server_apply(
    reading: Reading, kind: Kind, body: Object, *, is_dry: bool, force: bool
) -> Object:
    """The object as it is after the apply, or would be if that is a dry run.

    Raises:
        Conflict: another manager owns a field that would change, and `force` is not set.
        ApiError: it is refused.
    """
    query = {"fieldManager": MANAGER, "force": "true" if force else "false"}
    if is_dry:
        query["dryRun"] = "All"
    path = kind.path(*key_of(body))
    request = Request("PATCH", path, query, msgspec.json.encode(body), APPLY_PATCH)
    try:
        answer = await once(reading.transport, request, kind, key_of(body))
    except Conflict as error:
        error.message += "; --force-conflicts takes these fields over"
        raise
    decoded: Object = msgspec.json.decode(answer)
    return decoded


def comparable(body: Object | None) -> Object:
    """An object without its status and without what the API server writes; {} if there is none."""
    if body is None:
        return {}
    metadata = {k: v for k, v in body["metadata"].items() if k not in _KNOWN_LATER}
    notes = {k: v for k, v in metadata.pop("annotations", {}).items() if k != _LAST_APPLIED}
    if notes:
        metadata["annotations"] = notes
    rest = {k: v for k, v in body.items() if k not in ("metadata", "status")}
    return {
        "apiVersion": rest.pop("apiVersion"),
        "kind": rest.pop("kind"),
        "metadata": metadata,
    } | rest
