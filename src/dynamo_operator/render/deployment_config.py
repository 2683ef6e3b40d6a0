"""What the variable `DYN_DEPLOYMENT_CONFIG` says about a service, moved into that service's spec."""

import json

from dynamo_operator.api.deployment_config import (
    VARIABLE,
    arguments_of,
    config_of,
    folded,
    mapping,
    workers_of,
)
from dynamo_operator.kube.kind import Object
from dynamo_operator.render.components.frontend import HTTP_PORT

_RESOURCES = ("cpu", "memory", "gpu", "custom")


def applied(spec: Object, service: str) -> Object:
    """A component's spec after its own entry of the variable. Replicas in the spec itself win."""
    config = config_of(spec.get("envs", ()))
    entry = config.get(service)
    if not isinstance(entry, dict):
        return spec
    found = dict(spec)
    if found.get("componentType") == "frontend":
        changed = {**config, service: {**entry, "port": HTTP_PORT}}
        found["envs"] = [
            {**env, "value": json.dumps(changed, sort_keys=True, separators=(",", ":"))}
            if env["name"] == VARIABLE
            else env
            for env in spec["envs"]
        ]
    workers = workers_of(config, service)
    if workers is not None and "replicas" not in spec:
        found["replicas"] = workers
    wanted = folded(mapping(arguments_of(config, service).get("resources")))
    sizes = {name: wanted[name] for name in _RESOURCES if wanted.get(name)}
    if sizes:
        old = spec.get("resources", {})
        both = {side: {**old.get(side, {}), **sizes} for side in ("requests", "limits")}
        found["resources"] = {**old, **both}
    return found
