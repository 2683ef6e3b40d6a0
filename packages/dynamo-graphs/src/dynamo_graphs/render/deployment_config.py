"""The variable `DYN_DEPLOYMENT_CONFIG` of a frontend, which is to find its port there."""

import json

from dynamo_graphs.api.deployment_config import VARIABLE, config_of
from dynamo_graphs.render.components.frontend import HTTP_PORT
from kube_runtime.kind import Object


def with_port(spec: Object, service: str) -> Object:
    """A component's spec; with its port in its own entry of the variable, if a frontend has one."""
    config = config_of(spec.get("envs", ()))
    entry = config.get(service)
    if spec.get("componentType") != "frontend" or not isinstance(entry, dict):
        return spec
    changed = {**config, service: {**entry, "port": HTTP_PORT}}
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    envs = [{**each, "value": text} if each["name"] == VARIABLE else each for each in spec["envs"]]
    return {**spec, "envs": envs}
