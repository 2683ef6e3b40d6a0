"""Keep what running pods got from their namespace while nothing else of their template changes.

Pull secrets and marked ServiceAccounts come and go without an edit of any graph: a job renews the credentials
of a registry every few hours by deleting and creating the Secret. So a workload records what its pods got.
While the template is otherwise the same, it is rendered with that record, and with what the namespace has now
as soon as the template changes for another reason.

A record counts only as long as it can be used: not with a ServiceAccount that is no longer marked. And what
is not in it is taken at once where nothing runs that could be restarted: before the first pod exists, and
where no pod of the template can pull its image.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.diagnosis import lacks_image
from dynamo_operator.component.render import namespace_defaults
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveObjects, NamespaceDefaults
from dynamo_operator.shared.templates import DEPLOYMENT_UNIT, GROUP_UNIT, WORKLOADS, units
from kube_runtime.apply.drift import template_has_no_drift
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object, Resource, content_of, decoder_of, key_of

_DECODER = decoder_of(dict[str, NamespaceDefaults])


def running_defaults(
    component: str, unit: str, now: NamespaceDefaults, live: Resource, facts: Facts, *, is_idle: bool
) -> NamespaceDefaults:
    """Return what the pods of a component should be rendered with, if nothing else has changed.

    `now` is what the namespace has, `unit` the name of the templates in the workload `live`. `is_idle`: no
    pod would be restarted that has started.
    """
    try:
        recorded = _DECODER.decode(live.metadata.annotations.get(labels.NAMESPACE_DEFAULTS, ""))
    except (msgspec.DecodeError, RecursionError):
        recorded = None  # without a record, or another client has made it unreadable
    if recorded is not None:
        running = recorded.get(component, NamespaceDefaults())
    elif now == NamespaceDefaults():
        return now
    else:
        running = _present(now, units(content_of(live)).get(unit, {}))
    if now.image_pull_secrets is None or running.image_pull_secrets is None:
        return now  # the user has switched the search on or off
    account = running.service_account_name
    if account and account not in facts.component_service_accounts:
        running = replace(running, service_account_name=now.service_account_name)
    is_new = not set(now.image_pull_secrets) <= set(running.image_pull_secrets or ()) or (
        now.service_account_name != running.service_account_name
    )
    return now if is_idle and is_new else running


def _is_otherwise_same(desired: Object, live: Object, unit: str) -> bool:
    ours, theirs = units(desired).get(unit), units(live).get(unit)
    if ours is None or theirs is None or ours.keys() != theirs.keys():
        return False
    return all(
        template_has_no_drift(value, theirs[name]) if isinstance(value, dict) else value == theirs[name]
        for name, value in ours.items()
    )


def _present(now: NamespaceDefaults, templates: Object) -> NamespaceDefaults:
    """Those of the defaults that the templates of a workload without a record have."""
    pods: list[Object] = [template["spec"] for template in templates.values() if isinstance(template, dict)]
    secrets = {entry.get("name") for pod in pods for entry in pod.get("imagePullSecrets") or ()}
    accounts = {pod.get("serviceAccountName") for pod in pods}
    present, account = now.image_pull_secrets, now.service_account_name
    if present is not None:
        present = tuple(name for name in present if name in secrets)
    return NamespaceDefaults(present, account if account in accounts else "")


class ComponentUnit(msgspec.Struct, frozen=True):
    """A component as part of its workloads: the unit of its templates, its pods, its present defaults."""

    unit: str
    now: NamespaceDefaults
    pods: tuple[Pod, ...] = ()


def component_unit(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings, pods: tuple[Pod, ...] = ()
) -> dict[str, ComponentUnit]:
    """A component, by its name, as the only one in its workloads."""
    unit = DEPLOYMENT_UNIT if component.spec.nodes == 1 else GROUP_UNIT
    now = namespace_defaults(component, facts, settings)
    return {component.metadata.name: ComponentUnit(unit, now, pods)}


def _kept_defaults(
    components: Mapping[str, ComponentUnit], live: LiveObjects, facts: Facts
) -> dict[str, NamespaceDefaults]:
    """The defaults of running pods that differ from the present ones, by component."""
    # The first workload decides: an apply that was interrupted has written that one.
    first = min((key for key in live if key[0] in WORKLOADS), default=None)
    if first is None:
        return {}
    running = {
        component: running_defaults(
            *(component, part.unit, part.now, live[first], facts),
            is_idle=not part.pods or lacks_image(part.pods),
        )
        for component, part in components.items()
    }
    return {name: kept for name, kept in running.items() if kept != components[name].now}


def facts_of_running_pods(
    facts: Facts,
    components: Mapping[str, ComponentUnit],
    live: LiveObjects,
    render: Callable[[Facts], Iterable[Object]],
) -> Facts:
    """The facts to render with: the defaults of running pods, where a live workload stays the same by them.

    `render` returns the workloads, as applied; it is called if some running pods have other defaults.
    """
    kept, still = _kept_defaults(components, live, facts), dict[str, NamespaceDefaults]()
    for body in render(replace(facts, running_defaults=kept)) if kept else ():
        running = live.get((body["kind"], key_of(body))) if body["kind"] in WORKLOADS else None
        if running is None:
            continue
        content = content_of(running)
        for component in kept.keys() - still.keys():
            if _is_otherwise_same(body, content, components[component].unit):
                still[component] = kept[component]
        if still.keys() == kept.keys():
            break
    return replace(facts, running_defaults=still)
