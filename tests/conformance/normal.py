"""Objects without what differs between any two runs, so that two operators can be compared.

Both sides get the same treatment, and nothing else is left out.
"""

import json
import re
import shlex
from collections.abc import Iterable
from typing import Any

from kube_runtime.types.meta import Object
from texts import replaced

OURS = frozenset(
    (
        "DynamoGraphDeployment",
        "DynamoComponentDeployment",
        "DynamoGraphDeploymentScalingAdapter",
        "DynamoModel",
        "DynamoGraphDeploymentRequest",
        "DynamoDeployment",
        "DynamoNimDeployment",
        "DynamoNimRequest",
    )
)
"""Kinds whose status the operator writes; other controllers write every other status."""

_VOLATILE = frozenset(
    (
        "uid",
        "resourceVersion",
        "generation",
        "managedFields",
        "namespace",
        "creationTimestamp",
        "deletionTimestamp",
    )
)
_TIMES = frozenset(("lastTransitionTime", "lastUpdateTime", "startTime", "completionTime"))
_BOOKKEEPING = (
    "nvidia.com/last-applied-",
    "nvidia.com/owner-generation",
    "dgdr.nvidia.com/record",
    "nvidia.com/workload-provider",
    "nvidia.com/namespace-defaults",
    "yatai.ai/bento-request-hash",
    "deployment.kubernetes.io/revision",
    "pv.kubernetes.io/",
)
_GIVEN = frozenset(("Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim"))
_EVERYWHERE = frozenset(("ConfigMap/kube-root-ca.crt", "ServiceAccount/default"))


def normal_objects(objects: Iterable[Object], given: Iterable[Object]) -> dict[str, Object]:
    """The objects by `Kind/name`, without those that every namespace has and those of the input."""
    inputs = {_id(each) for each in given if each.get("kind") in _GIVEN}
    named = {_id(each): normal(each) for each in _with_plain_builds([*objects])}
    return {name: each for name, each in named.items() if name not in inputs | _EVERYWHERE}


def normal(body: Object) -> Object:
    """One object without identities, times and other people's status."""
    if body["kind"] == "Secret":
        keys = body["keys"] if "keys" in body else sorted(body.get("data") or ())
        metadata = _metadata(body["metadata"])
        return {"metadata": metadata, "kind": "Secret", "keys": keys, "type": body["type"]}
    if body["kind"] in ("Job", "Deployment"):
        body = _without_uids(body)
    if _is_build(body):
        body = _without_shell(body)
    kept = {name: value for name, value in body.items() if name not in ("metadata", "status")}
    if body["kind"] in OURS and body.get("status"):
        kept["status"] = _without_times(body["status"])
    if body["kind"] == "DynamoModel" and body.get("status", {}).get("endpoints"):
        endpoints = map(_endpoint, body["status"]["endpoints"])
        kept["status"]["endpoints"] = sorted(endpoints, key=lambda endpoint: str(endpoint["podName"]))
    if body["kind"] == "Service":
        kept["spec"] = _without_addresses(body["spec"])
    if body["kind"] == "PersistentVolumeClaim":
        kept["spec"] = {name: each for name, each in body["spec"].items() if name != "volumeName"}
    return {"metadata": _metadata(body["metadata"]), **_without_nulls(kept)}


def normal_events(events: Iterable[str]) -> set[str]:
    """The events that both operators write; see S9 in `docs/deviations.md`."""
    return {
        each
        for each in events
        if not each.endswith("/Paused")  # the player pauses requests
        if each.startswith(("DynamoModel/", "DynamoGraphDeploymentRequest/"))
        or (each.startswith("Dynamo") and ("/Normal/Create" in each or "/ValidationFailed" in each))
    }


def event(body: Object) -> str:
    return f"{body['involvedObject'].get('kind')}/{body.get('type')}/{body.get('reason')}"


def _id(body: Object) -> str:
    return f"{body['kind']}/{body['metadata']['name']}"


def _metadata(metadata: Object) -> Object:
    kept = {name: value for name, value in metadata.items() if name not in _VOLATILE}
    kept["annotations"] = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if not name.startswith(_BOOKKEEPING)
    }
    kept["ownerReferences"] = [
        {name: value for name, value in each.items() if name != "uid"}
        for each in metadata.get("ownerReferences") or ()
    ]
    return {name: value for name, value in kept.items() if value}


def _endpoint(endpoint: Object) -> Object:
    """An endpoint of a model, without what differs from pod to pod."""
    name = endpoint["podName"].rpartition("-")[0] + "-<rand>"
    said = {"address": "http://<ip>:9090", "podName": re.sub(r"-[0-9a-f]{7,10}(?=-)", "", name)}
    left_out = ("podUID", "lastAttemptTime")
    return {key: value for key, value in endpoint.items() if key not in left_out} | said


def _with_plain_builds(objects: list[Object]) -> list[Object]:
    """The objects with one name in place of the generated names of Jobs that build images."""
    builds = [each["metadata"]["name"] for each in objects if _is_build(each)]
    found: list[Object] = replaced(objects, dict.fromkeys(builds, "<build>"))
    return found


def _is_build(body: Object) -> bool:
    labels = body["metadata"].get("labels") or {}
    return body["kind"] == "Job" and "yatai.ai/is-bento-image-builder" in labels


def _without_shell(job: Object) -> Object:
    """A Job that builds an image, with the words that the builder runs; a shell ran them once."""
    found: Object = json.loads(json.dumps(job))
    (builder,) = found["spec"]["template"]["spec"]["containers"]
    words = [*builder.pop("command"), *builder.pop("args")]
    if words[:2] == ["sh", "-c"]:
        line = words[2].removeprefix("sleep 15; ").removesuffix(" && exit 0 || exit 42")
        words = shlex.split(line)
    own = [at for at, word in enumerate(words) if "BUILDKIT_CACHE_MOUNT_NS=" in word]
    for at in own:  # Y27
        del words[at - 1 : at + 1]
    builder["args"] = words
    return found


def _without_uids(body: Object) -> Object:
    """A Job or Deployment without its own uid and that of its owner, which are in labels and variables."""
    owners = (each.get("uid") for each in body["metadata"].get("ownerReferences") or ())
    uids = [*filter(None, (body["metadata"].get("uid"), *owners))]
    found: Object = replaced(body, dict.fromkeys(uids, "<uid>"))
    return found


def _without_addresses(spec: Object) -> Object:
    replaced = dict(spec)
    if spec.get("clusterIP") != "None":
        replaced |= {"clusterIP": "<allocated>", "clusterIPs": ["<allocated>"]}
    return replaced


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(each) for name, each in value.items() if name not in _TIMES}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
