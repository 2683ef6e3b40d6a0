"""The variable `DYN_DEPLOYMENT_CONFIG`: sizes of services in JSON, from an earlier generation.

Source: specification `rendering` 10.2. The hard part is that it is an environment variable of the
user and part of the spec at the same time: what it says about a service is moved into that
service's spec.
"""

import json
from typing import Any

from dynamo_operator.kube.kind import Object
from dynamo_operator.render.components.frontend import HTTP_PORT

VARIABLE = "DYN_DEPLOYMENT_CONFIG"
_RESOURCES = ("cpu", "memory", "gpu", "custom")


def applied(spec: Object, service: str) -> Object:
    """A component's spec after its own entry of the variable. Replicas in the spec itself win."""
    text = next((env.get("value") for env in spec.get("envs", ()) if env["name"] == VARIABLE), None)
    config = _mapping(_decoded(text))
    entry = config.get(service)
    if not isinstance(entry, dict):
        return spec
    arguments = _mapping(_folded(entry).get("serviceargs"))
    found = dict(spec)
    if found.get("componentType") == "frontend":
        changed = {**config, service: {**entry, "port": HTTP_PORT}}
        found["envs"] = [
            {**env, "value": json.dumps(changed, sort_keys=True, separators=(",", ":"))}
            if env["name"] == VARIABLE
            else env
            for env in spec["envs"]
        ]
    workers = _folded(arguments).get("workers")
    if isinstance(workers, int) and "replicas" not in spec:
        found["replicas"] = workers
    wanted = _folded(_mapping(_folded(arguments).get("resources")))
    sizes = {name: wanted[name] for name in _RESOURCES if wanted.get(name)}
    if sizes:
        old = spec.get("resources", {})
        both = {side: {**old.get(side, {}), **sizes} for side in ("requests", "limits")}
        found["resources"] = {**old, **both}
    return found


def _decoded(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None  # validation has reported it


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _folded(value: dict[str, Any]) -> dict[str, Any]:
    """The entries under lower-case names: below a service's entry, case does not count."""
    return {name.lower(): each for name, each in value.items()}
