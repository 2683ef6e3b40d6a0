"""Graphs of the real runtime, small enough for a test."""

from typing import Any

from kube_runtime.types.meta import Object

RUNTIME = "localhost/dynamo-runtime:1"
OTHER_RUNTIME = "localhost/dynamo-runtime:2"
"""The same contents, another image."""

ADDRESS_OF_NATS = "nats://nats.messaging:4222"
NATS = {"name": "NATS_SERVER", "value": ADDRESS_OF_NATS}
"""In the graph: the simulated engine of Dynamo 0.9 needs NATS, and a default install gives it no address."""

AT_ONCE = {"exec": {"command": ["true"]}}
"""A probe that succeeds, for containers in which the runtime does not run."""

PATIENT = {
    "httpGet": {"path": "/live", "port": "system"},
    "periodSeconds": 5,
    "timeoutSeconds": 4,
    "failureThreshold": 24,
}
PATIENT_FRONTEND = {**PATIENT, "httpGet": {"path": "/live", "port": "http"}}
"""Liveness probes of a worker and a frontend for tests that count requests.

By the default ones, the kubelet kills a worker that has missed a single check, and a frontend that has missed
three of a second each, with all requests. On a machine with a load of 20, that happens to pods that are well.
"""


def container(*command: str, image: str = RUNTIME, **fields: Any) -> Object:
    """A main container with this command."""
    chosen: Object = {"image": image, "imagePullPolicy": "IfNotPresent", **fields}
    return {**chosen, "command": list(command)} if command else chosen


def frontend(*arguments: str, **fields: Any) -> Object:
    """A frontend with these arguments; without any, with its default ones."""
    main = container()
    if arguments:
        main["args"] = ["-m", "dynamo.frontend", *arguments]
    return {"componentType": "frontend", "replicas": 1, "extraPodSpec": {"mainContainer": main}, **fields}


def idle_frontend() -> Object:
    """A frontend that does nothing and is ready at once, where a test is about something else."""
    main = container("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.5; done")
    always = {"livenessProbe": AT_ONCE, "readinessProbe": AT_ONCE}
    return frontend(extraPodSpec={"mainContainer": main}, **always)


def worker(*arguments: str, component: str = "backend", pod: Object | None = None, **fields: Any) -> Object:
    """A worker with a simulated engine. The runtime takes its namespace from an argument only."""
    words = " ".join(("--model-path /model --speedup-ratio 10", *arguments))
    endpoint = f"dyn://$DYN_NAMESPACE.{component}.generate"
    line = f"exec python3 -m dynamo.mocker {words} --endpoint {endpoint}"
    main = container("/bin/sh", "-c", line)
    return {
        "componentType": "worker",
        "replicas": 1,
        "extraPodSpec": {"mainContainer": main, **(pod or {})},
        **fields,
    }


def graph(
    name: str, *envs: Object, nats: Object = NATS, annotations: Object | None = None, **services: Object
) -> Object:
    """A graph of these services; of a frontend and a worker if none is given."""
    chosen = services or {"Frontend": frontend(), "Worker": worker()}
    spec: Object = {"envs": [*filter(None, (nats, *envs))], "services": chosen}
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
