"""The default probes, one table per profile.

Two sources give different numbers. `http` is what running graphs have; `documented` is the
published API reference to the letter, whose frontend check needs curl and jq inside the image.
"""

from typing import Literal

from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object

Profile = Literal["http", "documented"]


def _http(path: str, port: str, **numbers: int) -> Object:
    return {"httpGet": {"path": path, "port": port}, **numbers}


_HEALTHY = 'curl -s http://localhost:${DYNAMO_PORT}/health | jq -e ".status == \\"healthy\\""'
_WORKER_STARTUP = _http("/live", "system", periodSeconds=10, timeoutSeconds=5, failureThreshold=720)

_SLOW = {
    "initialDelaySeconds": 60,
    "periodSeconds": 60,
    "timeoutSeconds": 30,
    "failureThreshold": 10,
}

_PROBES: dict[Profile, dict[str, dict[str, Object]]] = {
    "http": {
        "frontend": {
            "livenessProbe": _http(
                "/live",
                "http",
                initialDelaySeconds=15,
                periodSeconds=10,
                timeoutSeconds=1,
                failureThreshold=3,
            ),
            "readinessProbe": _http(
                "/health",
                "http",
                initialDelaySeconds=10,
                periodSeconds=10,
                timeoutSeconds=3,
                failureThreshold=3,
            ),
        },
        "worker": {
            "livenessProbe": _http(
                "/live", "system", periodSeconds=5, timeoutSeconds=4, failureThreshold=1
            ),
            "readinessProbe": _http(
                "/health", "system", periodSeconds=10, timeoutSeconds=4, failureThreshold=3
            ),
            "startupProbe": _WORKER_STARTUP,
        },
    },
    "documented": {
        "frontend": {
            "livenessProbe": _http("/health", "http", **_SLOW),
            "readinessProbe": {"exec": {"command": ["/bin/sh", "-c", _HEALTHY]}, **_SLOW},
        },
        "worker": {
            "livenessProbe": _http(
                "/live", "system", periodSeconds=5, timeoutSeconds=30, failureThreshold=1
            ),
            "readinessProbe": _http(
                "/health", "system", periodSeconds=10, timeoutSeconds=30, failureThreshold=60
            ),
            "startupProbe": _WORKER_STARTUP,
        },
    },
}


def probes(role: str, settings: RenderSettings) -> dict[str, Object]:
    """The default probes of a role by field name; none for a role that has no entry.

    How many misses a worker may have is for the administrator to say: a model may take an hour to load
    again.
    """
    found = _PROBES[settings.probe_profile].get(role, {})
    if role != "worker":
        return found
    liveness = {**found["livenessProbe"], "failureThreshold": settings.worker_liveness_failures}
    return {**found, "livenessProbe": liveness}
