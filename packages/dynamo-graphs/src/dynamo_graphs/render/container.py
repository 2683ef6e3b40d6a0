"""The main container: the role's default, the user's override, then what the spec adds."""

from dynamo_graphs.render.group import GroupNode
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.merge import (
    has_handler,
    merged,
    merged_environment,
    merged_probe,
    variable,
    variable_of_field,
)
from dynamo_graphs.render.resources import with_device_limits
from dynamo_graphs.render.volumes import mounts
from kube_runtime.kind import Object


def main_container(plan: ComponentPlan, node: GroupNode | None) -> Object:
    """The container that runs the component; as one of a group if `node` says which one."""
    default = plan.role.container(plan)
    container: Object = dict(merged(default, plan.main_container))
    container |= _probes(default, plan)
    container["env"] = _environment(default, plan)
    if resources := _resources(container.get("resources", {}), plan.resources):
        container["resources"] = resources
    if plan.environment_secret:
        source = {"secretRef": {"name": plan.environment_secret}}
        container["envFrom"] = [*container.get("envFrom", ()), source]
    if mounted := mounts(plan, default.get("volumeMounts", ())):
        container["volumeMounts"] = mounted
    container = plan.backend.container(container, plan)
    return plan.backend.launch(container, plan, node) if node else container


def _probes(default: Object, plan: ComponentPlan) -> dict[str, Object]:
    """The user's over the default's; a startup probe with a handler, and the spec's own, win whole."""
    users = plan.main_container
    merging = {
        name: merged_probe(default.get(name, {}), users[name])
        for name in ("livenessProbe", "readinessProbe")
        if name in users
    }
    startup: Object = users.get("startupProbe") or {}
    if startup and not has_handler(startup):
        startup = merged_probe(default.get("startupProbe", {}), startup)
    return merging | ({"startupProbe": startup} if startup else {}) | plan.probes


def _environment(default: Object, plan: ComponentPlan) -> list[Object]:
    lowest = [*_infrastructure(plan), *_identity(plan), *default.get("env", ())]
    container = merged_environment(lowest, plan.main_container.get("env", ()))
    found = merged_environment(container, plan.environment)
    if plan.is_discovered_by_kubernetes and all(each["name"] != "ETCD_ENDPOINTS" for each in found):
        # Runtime 0.9.0 looks for etcd at localhost:2379 all the same, and ends when it finds none.
        return merged_environment([variable("DYN_STORE_KV", "mem")], found)
    return found


def _infrastructure(plan: ComponentPlan) -> list[Object]:
    settings = plan.settings
    values = {
        "ETCD_ENDPOINTS": settings.etcd_address,
        "MODEL_EXPRESS_URL": settings.model_express_url,
        "NATS_SERVER": settings.nats_address,
        "PROMETHEUS_ENDPOINT": settings.prometheus_endpoint,
    }
    return [variable(name, value) for name, value in values.items() if value]


def _identity(plan: ComponentPlan) -> list[Object]:
    """Who and where the process is."""
    found = [
        variable("DYN_COMPONENT", plan.component_type),
        variable("DYN_NAMESPACE", plan.dynamo_namespace),
        variable("DYN_PARENT_DGD_K8S_NAME", plan.graph),
        variable("DYN_PARENT_DGD_K8S_NAMESPACE", plan.namespace),
        variable_of_field("POD_NAME", "metadata.name"),
        variable_of_field("POD_NAMESPACE", "metadata.namespace"),
        variable_of_field("POD_UID", "metadata.uid"),
    ]
    if plan.is_discovered_by_kubernetes:
        found.append(variable("DYN_DISCOVERY_BACKEND", "kubernetes"))
    return found


def _resources(container: Object, component: Object) -> Object:
    """The container's resources with the component's merged over them; resource claims add up."""
    both: Object = dict(merged(container, component))
    claims = [*container.get("claims", ()), *component.get("claims", ())]
    if claims:
        both["claims"] = list({claim["name"]: claim for claim in claims}.values())
    return with_device_limits(both)
