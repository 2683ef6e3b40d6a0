"""vLLM: told where its compilation cache is."""

from dynamo_operator.kube.kind import Object
from dynamo_operator.render.merge import variable
from dynamo_operator.render.seams import ComponentPlan

CACHE_VARIABLE = "VLLM_CACHE_ROOT"


def container(container: Object, plan: ComponentPlan) -> Object:
    """The container with the cache's place at the end, unless the user set it."""
    caches = [mount.path for mount in plan.mounts if mount.is_cache]
    environment = container["env"]
    if not caches or any(CACHE_VARIABLE == entry["name"] for entry in environment):
        return container
    return {**container, "env": [*environment, variable(CACHE_VARIABLE, caches[0])]}
