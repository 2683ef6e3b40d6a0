"""Objects without what differs between any two runs, so that two operators can be compared.

Both sides get the same treatment, and nothing else is left out.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from kube_runtime.kind import Object

OURS = frozenset(
    (
        "DynamoGraphDeployment",
        "DynamoComponentDeployment",
        "DynamoGraphDeploymentScalingAdapter",
        "DynamoModel",
        "DynamoGraphDeploymentRequest",
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
    "nvidia.com/workload-provider",
    "deployment.kubernetes.io/revision",
    "pv.kubernetes.io/",
)
_GIVEN = frozenset(("Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim"))
_EVERYWHERE = frozenset(("ConfigMap/kube-root-ca.crt", "ServiceAccount/default"))


def normal_objects(objects: Iterable[Object], given: Iterable[Object]) -> dict[str, Object]:
    """The objects by `Kind/name`, without those that every namespace has and those of the input."""
    inputs = {_id(each) for each in given if each.get("kind") in _GIVEN}
    named = {_id(each): normal(each) for each in objects}
    return {name: each for name, each in named.items() if name not in inputs | _EVERYWHERE}


def normal(body: Object) -> Object:
    """One object without identities, times and other people's status."""
    if body["kind"] == "Secret":
        return _secret(body)
    if body["kind"] == "Job":
        body = _without_uids(body)
    kept = {name: value for name, value in body.items() if name not in ("metadata", "status")}
    if body["kind"] in OURS and body.get("status"):
        kept["status"] = _without_times(body["status"])
    if body["kind"] == "DynamoModel" and body.get("status", {}).get("endpoints"):
        kept["status"]["endpoints"] = [_endpoint(each) for each in body["status"]["endpoints"]]
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
        if each.startswith(("DynamoModel/", "DynamoGraphDeploymentRequest/"))
        or (each.startswith("Dynamo") and ("/Normal/Create" in each or "/ValidationFailed" in each))
    }


def event(body: Object) -> str:
    """An event as it is compared."""
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


def _secret(body: Object) -> Object:
    keys = body["keys"] if "keys" in body else sorted(body.get("data") or ())
    metadata = _metadata(body["metadata"])
    return {"metadata": metadata, "kind": "Secret", "keys": keys, "type": body["type"]}


def _endpoint(endpoint: Object) -> Object:
    """An endpoint of a model, without what differs from pod to pod."""
    name = endpoint["podName"].rpartition("-")[0] + "-<rand>"
    said = {"address": "http://<ip>:9090", "podName": re.sub(r"-[0-9a-f]{7,10}(?=-)", "", name)}
    left_out = ("podUID", "lastAttemptTime")
    return {key: value for key, value in endpoint.items() if key not in left_out} | said


def _without_uids(job: Object) -> Object:
    """A Job without its own uid and that of its owner, which are in labels and variables."""
    owners = [each.get("uid") for each in job["metadata"].get("ownerReferences") or ()]
    text = json.dumps(job)
    for uid in filter(None, (job["metadata"].get("uid"), *owners)):
        text = text.replace(uid, "<uid>")
    found: Object = json.loads(text)
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
