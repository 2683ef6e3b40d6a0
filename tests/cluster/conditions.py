"""What an object says of itself, as every reader of conditions sees it."""

from typing import Any

from kube_runtime.kind import Object


def condition(body: Object, type_: str = "Ready") -> dict[str, Any]:
    """The condition of that type, or {}."""
    conditions = body.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == type_), {})


def is_ready(body: Object) -> bool:
    """Whether a graph says that its newest spec is ready."""
    return (
        condition(body).get("status") == "True"
        and body["status"].get("observedGeneration") == body["metadata"]["generation"]
    )
