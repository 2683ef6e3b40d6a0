"""The graph from which profiling starts, with its pods where the user can run them.

A profiler deploys temporary graphs, and takes only the base graph of a request into them: its configuration
has no field for tolerations and the like. So these are put into the base, by the function that puts them
into the resulting graph. A base that is not a graph is passed on as it is, for the profiler to refuse with
its own message.
"""

import re

import msgspec
from msgspec.structs import replace

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request_graph import completed, config_map
from dynamo_graphs.plan.request_output import BadOutput, documents
from kube_runtime.kind import Object

_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""What JSON takes as it is and YAML only as an escape (YAML 1.2, 5.1)."""


def completed_base(text: str, spec: DynamoGraphDeploymentRequestSpec, placed: Object) -> str | None:
    """The base graph as JSON, which is YAML. None means: as it is; nothing has to be, or can be, added.

    `placed` are the fields of the profiling pod that say where it runs.
    """
    try:
        found = list(documents("the base graph", text))
        if len(found) != 1 or not _is_graph(found[0]):
            return None
        # Temporary graphs run the real engines, whatever the last one runs.
        done = completed(found[0], replace(spec, use_mocker=False), placed, may_scale=False)
    except BadOutput:
        return None
    if done == found[0]:
        return None
    text = msgspec.json.format(msgspec.json.encode(done), indent=2).decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def base_config_map(request: DynamoGraphDeploymentRequest, key: str, done: str) -> Object:
    """The ConfigMap with the completed base graph under that key, without owner references."""
    metadata = request.metadata
    found: Object = {
        "metadata": {"name": names.profiling_base(metadata.name, metadata.uid)},
        "data": {key: done},
    }
    return config_map(request, found, metadata.namespace)


def _is_graph(document: Object) -> bool:
    spec = document.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    return (
        document["kind"] == DynamoGraphDeployment.KIND.name
        and isinstance(services, dict)
        and all(_is_service(each) for each in services.values())
    )


def _is_service(value: object) -> bool:
    """Whether it has the form of a service, as far as something is added to it."""
    if not isinstance(value, dict):
        return False
    pod, envs = value.get("extraPodSpec") or {}, value.get("envs") or []
    return (
        isinstance(pod, dict)
        and isinstance(envs, list)
        and all(isinstance(each, dict) for each in envs)
    )
