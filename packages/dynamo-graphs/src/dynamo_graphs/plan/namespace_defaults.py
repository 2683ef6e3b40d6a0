"""Keep what running pods got from their namespace while nothing else of their template changes.

Pull secrets and marked ServiceAccounts come and go without an edit of any graph: a job renews the credentials
of a registry every few hours by deleting and creating the Secret. So a workload records what its pods got.
While the template is otherwise the same, it is rendered with that record, and with what the namespace has now
as soon as the template changes for another reason.

A record counts only as long as it can be used: not with a ServiceAccount that is no longer marked. And what
is not in it is taken at once where nothing runs that could be restarted: before the first pod exists, and
where no pod of the template can pull its image.
"""

from collections.abc import Mapping

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.facts import Facts, NamespaceDefaults
from dynamo_graphs.plan.templates import units
from kube_runtime.apply.drift import content_of, template_has_no_drift
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

_DECODER = msgspec.json.Decoder(dict[str, NamespaceDefaults])


def running_defaults(
    component: str,
    unit: str,
    now: NamespaceDefaults,
    live: Resource,
    facts: Facts,
    *,
    is_idle: bool,
) -> NamespaceDefaults:
    """Return what the pods of a component should be rendered with, if nothing else has changed.

    `now` is what the namespace has, `unit` the name of the templates in the workload `live`. `is_idle`: no
    pod would be restarted that has started.
    """
    recorded = _recorded(live.metadata.annotations)
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
        running = msgspec.structs.replace(running, service_account_name=now.service_account_name)
    is_new = not set(now.image_pull_secrets) <= set(running.image_pull_secrets or ()) or (
        now.service_account_name != running.service_account_name
    )
    return now if is_idle and is_new else running


def is_otherwise_same(desired: Object, live: Object, unit: str) -> bool:
    """Whether writing the templates of a unit would add and change nothing."""
    ours, theirs = units(desired).get(unit), units(live).get(unit)
    if ours is None or theirs is None or ours.keys() != theirs.keys():
        return False
    return all(
        template_has_no_drift(value, theirs[name])
        if isinstance(value, dict)
        else value == theirs[name]
        for name, value in ours.items()
    )


def _recorded(annotations: Mapping[str, str]) -> dict[str, NamespaceDefaults] | None:
    """The record of a workload; None if it has none, or another client has made it unreadable."""
    try:
        return _DECODER.decode(annotations.get(labels.NAMESPACE_DEFAULTS, ""))
    except (msgspec.DecodeError, RecursionError):
        return None


def _present(now: NamespaceDefaults, templates: Object) -> NamespaceDefaults:
    """Those of the defaults that the templates of a workload without a record have."""
    pods: list[Object] = [
        template["spec"] for template in templates.values() if isinstance(template, dict)
    ]
    secrets = {entry.get("name") for pod in pods for entry in pod.get("imagePullSecrets") or ()}
    accounts = {pod.get("serviceAccountName") for pod in pods}
    account = now.service_account_name
    return NamespaceDefaults(
        None
        if now.image_pull_secrets is None
        else tuple(name for name in now.image_pull_secrets if name in secrets),
        account if account in accounts else "",
    )
