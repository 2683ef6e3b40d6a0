"""The JSON types that rendering relies on inside a user's pod spec, probes and variables.

Those parts stay plain JSON, so that unknown fields survive. The API server checks them against the full
schema. Documents that do not come from it get at least this check of the fields that rendering reads.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from dynamo_graphs.validation import Problem

Shape: TypeAlias = "type | Mapping[str, Shape] | list[Shape]"

ENTRIES: Mapping[str, Shape] = {}
"""An object whose fields are not read one by one."""

ENVIRONMENT: Shape = [{"name": str, "value": str, "valueFrom": ENTRIES}]
PROBE: Mapping[str, Shape] = {
    "exec": {"command": [str]},
    "httpGet": {"path": str, "host": str, "scheme": str},
    "tcpSocket": {"host": str},
    "grpc": {"port": int, "service": str},
    "initialDelaySeconds": int,
    "periodSeconds": int,
    "timeoutSeconds": int,
    "successThreshold": int,
    "failureThreshold": int,
}
CONTAINER: Mapping[str, Shape] = {
    "name": str,
    "image": str,
    "command": [str],
    "args": [str],
    "env": ENVIRONMENT,
    "envFrom": [ENTRIES],
    "ports": [{"name": str, "containerPort": int, "hostPort": int, "protocol": str}],
    "volumeMounts": [{"name": str, "mountPath": str}],
    "resources": {"limits": ENTRIES, "requests": ENTRIES, "claims": [{"name": str}]},
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "startupProbe": PROBE,
}
POD: Mapping[str, Shape] = {
    "mainContainer": CONTAINER,
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
    "imagePullSecrets": [{"name": str}],
    "resourceClaims": [{"name": str}],
    "restartPolicy": str,
    "serviceAccount": str,
    "serviceAccountName": str,
    "terminationGracePeriodSeconds": int,
    "securityContext": ENTRIES,
}
_WORDS: dict[type, str] = {str: "text", int: "an integer"}


def shape_problems(value: object, shape: Shape, path: str) -> Iterator[Problem]:
    """Report each field whose type is not the one in `shape`; null counts as unset."""
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape) or isinstance(value, bool):
            yield Problem(path, f"expected {_WORDS[shape]}")
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            yield Problem(path, "expected a list")
            return
        for index, item in enumerate(value):
            if item is None:
                yield Problem(f"{path}[{index}]", "expected a value, found null")
            yield from shape_problems(item, shape[0], f"{path}[{index}]")
    elif not isinstance(value, Mapping):
        yield Problem(path, "expected an object")
    else:
        for name, inner in shape.items():
            yield from shape_problems(value.get(name), inner, f"{path}.{name}")
