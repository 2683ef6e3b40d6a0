"""Read the conditions of an object."""

from typing import Any

from kube_runtime.types.meta import Object


def condition(body: Object, type_: str = "Ready") -> dict[str, Any]:
    """The condition of that type, or {}."""
    conditions = body.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == type_), {})


def is_ready(body: Object) -> bool:
    return (
        condition(body).get("status") == "True"
        and body["status"].get("observedGeneration") == body["metadata"]["generation"]
    )
