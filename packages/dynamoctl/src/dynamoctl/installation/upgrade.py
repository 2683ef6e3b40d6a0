"""What an upgrade to this version, or a migration from another operator, would change: CRDs, and pods.

CRDs are applied to the API server as dry runs. Pods are foreseen by the functions of the controllers; a
change that they would make is tried as a dry run as well, because only the API server knows an object with
its defaults. The settings are those of the operator that runs: what changes with the values of a release is
not foreseen.
"""

from dynamo_graphs.api.crd import custom_resource_definitions
from dynamo_graphs.plan.adoption import is_of_earlier_operator
from dynamo_graphs.plan.templates import units
from dynamo_graphs.settings import RenderSettings
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.inventory import Definition
from dynamoctl.installation.upgrade_preview import Fate, Foreseen, cluster, foreseen
from kube_runtime.errors import ApiError
from kube_runtime.kind import Key

DEFINITIONS = "Upgrade of CRDs"
PODS = "Upgrade of Pods"
_NAMED_MOST = 20


async def definitions(reading: Reading) -> Finding:
    """Which CRDs an upgrade changes, and whether the API server accepts them."""
    changed: list[str] = []
    for definition in custom_resource_definitions():
        name = str(definition["metadata"]["name"])
        live = await reading.raw(Definition.KIND, Key("", name))
        try:
            after = await reading.applied(Definition.KIND, definition)
        except ApiError as error:
            return Finding(
                DEFINITIONS, CheckResult.FAIL, (f"the API server refuses {name}: {error.message}")
            )
        if live is None or live["spec"] != after["spec"]:
            changed.append(name)
    text = f"changes: {', '.join(changed)}" if changed else "nothing changes"
    return Finding(DEFINITIONS, CheckResult.OK, text)


async def pods(reading: Reading, settings: RenderSettings, namespace: str) -> Finding:
    """Which pods of a namespace this version would replace; "" means all namespaces. There must be none."""
    cache, origins = await cluster(reading, namespace)
    templates = list(foreseen(cache, settings, origins))
    replaced = [
        template
        for template in templates
        if template.fate is Fate.REPLACED and await _is_changed(reading, template)
    ]
    kept = [template for template in templates if template.fate is Fate.KEPT]
    waiting = f"; {len(kept)} keep their template until they are edited: {_names(kept)}"
    rest = waiting if kept else ""
    if not replaced:
        return Finding(
            PODS,
            CheckResult.OK,
            (f"no pods of {len(templates)} pod templates would be replaced{rest}"),
        )
    remedy = "dynamoctl render shows the new templates; see docs/upgrade-from-go.md"
    return Finding(
        PODS, CheckResult.FAIL, f"pods would be replaced: {_names(replaced)}{rest}", remedy
    )


def _names(templates: list[Foreseen]) -> str:
    """The workloads by namespace and name, and which part of a set of Grove is meant."""
    names = list(dict.fromkeys(map(_name, templates)))
    more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
    return ", ".join(names[:_NAMED_MOST]) + more


def _name(template: Foreseen) -> str:
    is_set = template.desired["kind"] == "PodCliqueSet"
    return f"{template.live.key}/{template.unit}" if is_set else str(template.live.key)


async def _is_changed(reading: Reading, template: Foreseen) -> bool:
    """Whether a template really becomes another one. What we wrote before can be tried on the API server.

    A dry run leaves fields of another manager in place, so it proves nothing for what another made.
    """
    if is_of_earlier_operator(template.live.metadata.annotations):
        return True
    before = await reading.raw(template.live.KIND, template.live.key)
    if before is None:
        return False
    after = await reading.applied(template.live.KIND, template.desired)
    return units(before).get(template.unit) != units(after).get(template.unit)
