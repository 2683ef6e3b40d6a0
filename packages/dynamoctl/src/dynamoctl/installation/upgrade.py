"""Preview what an upgrade to this version, or a migration from another operator, would change: CRDs and pods.

CRDs are applied as dry runs. Pod templates are rendered by the controllers' own functions, and a change is
verified with a dry run, because only the API server adds defaults. The settings are those of the running
operator: effects of changed chart values are not previewed.
"""

from dynamo_graphs.api.crd import custom_resource_definitions
from dynamo_graphs.plan.adoption import is_of_earlier_operator
from dynamo_graphs.plan.templates import units
from dynamo_graphs.settings import RenderSettings
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.kinds import Definition
from dynamoctl.installation.upgrade_preview import Fate, Foreseen, foreseen, live_cache
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
    """The pods of a namespace ("": of all) that this version would replace; there must be none."""
    cache, origins = await live_cache(reading, namespace)
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
    """The workloads by namespace and name, for a PodCliqueSet with the clique."""
    names = list(dict.fromkeys(map(_name, templates)))
    more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
    return ", ".join(names[:_NAMED_MOST]) + more


def _name(template: Foreseen) -> str:
    is_set = template.desired["kind"] == "PodCliqueSet"
    return f"{template.live.key}/{template.unit}" if is_set else str(template.live.key)


async def _is_changed(reading: Reading, template: Foreseen) -> bool:
    """Whether a template really changes, by a dry run if we applied the live one.

    A dry run keeps fields of other managers, so it proves nothing for a workload of an earlier operator.
    """
    if is_of_earlier_operator(template.live.metadata.annotations):
        return True
    before = await reading.raw(template.live.KIND, template.live.key)
    if before is None:
        return False
    after = await reading.applied(template.live.KIND, template.desired)
    return units(before).get(template.unit) != units(after).get(template.unit)
