"""What an upgrade to this version would change: definitions, and pods of components.

Both are asked of the API server as dry runs, because only it knows what an object is with its defaults. The
settings are those of the operator that runs: what changes with the values of a release is not foreseen.
Graphs on Grove are left out: their pods are Grove's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dynamo_operator.api import labels
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.crd import custom_resource_definitions
from dynamo_operator.controllers.gather import registries_only
from dynamo_operator.facts import Facts
from dynamo_operator.installation.checks import Finding, Verdict
from dynamo_operator.installation.inventory import Definition
from dynamo_operator.installation.reading import Reading
from dynamo_operator.kube.errors import ApiError
from dynamo_operator.kube.kind import Key, Object, key_of
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import PullSecret, ServiceAccount
from dynamo_operator.kube.types.istio import VirtualService
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.volcano import PodGroup
from dynamo_operator.render.component import component_objects
from dynamo_operator.settings import RenderSettings

DEFINITIONS = "Upgrade of Definitions"
PODS = "Upgrade of Pods"
_WORKLOADS = (Deployment.KIND, LeaderWorkerSet.KIND)
PULL_SECRETS = "type=kubernetes.io/dockerconfigjson"


@dataclass(frozen=True, slots=True)
class Beside:
    """What is beside the components of one namespace: what their rendering depends on."""

    secrets: Sequence[PullSecret]
    accounts: Sequence[ServiceAccount]
    present: Mapping[str, Definition]

    def facts(self) -> Facts:
        """As controllers gather them."""
        hosts: dict[str, list[str]] = {}
        for secret in map(registries_only, self.secrets):
            for host in secret.data:
                hosts.setdefault(host, []).append(secret.metadata.name)
        marked = (
            each.metadata.name
            for each in self.accounts
            if each.metadata.labels.get(labels.COMPONENT_POD) == "true"
        )
        return Facts(
            pull_secrets={host: tuple(sorted(names)) for host, names in hosts.items()},
            component_service_account=min(marked, default=""),
            istio_served=str(VirtualService.KIND) in self.present,
            lws_served=all(str(each.KIND) in self.present for each in (LeaderWorkerSet, PodGroup)),
        )


async def definitions(reading: Reading) -> Finding:
    """Which definitions an upgrade changes, and whether the API server takes them."""
    changed: list[str] = []
    for wanted in custom_resource_definitions():
        name = str(wanted["metadata"]["name"])
        live = await reading.raw(Definition.KIND, Key("", name))
        try:
            after = await reading.applied(Definition.KIND, wanted)
        except ApiError as error:
            return Finding(DEFINITIONS, Verdict.FAIL, f"{name} is refused: {error.message}")
        if live is None or live["spec"] != after["spec"]:
            changed.append(name)
    text = f"changes: {', '.join(changed)}" if changed else "nothing changes"
    return Finding(DEFINITIONS, Verdict.OK, text)


async def pods(reading: Reading, settings: RenderSettings, namespace: str) -> Finding:
    """Which components of a namespace would get new pods; "" means all namespaces. There must be none."""
    present = {each.metadata.name: each for each in await reading.all(Definition)}
    count, changed = 0, list[str]()
    for place, components in (await _by_namespace(reading, namespace)).items():
        beside = Beside(
            await reading.all(PullSecret, namespace=place, fields=PULL_SECRETS),
            await reading.all(ServiceAccount, namespace=place),
            present,
        )
        for component in components:
            count += 1
            if await _changes(reading, component, beside.facts(), settings):
                changed.append(str(component.key))
    if not changed:
        return Finding(PODS, Verdict.OK, f"no pod of {count} components changes")
    remedy = "dynamoctl render shows what it would become; see docs/install.md"
    return Finding(PODS, Verdict.FAIL, f"pods would be replaced: {', '.join(changed)}", remedy)


async def _by_namespace(
    reading: Reading, namespace: str
) -> dict[str, list[DynamoComponentDeployment]]:
    found: dict[str, list[DynamoComponentDeployment]] = {}
    for each in await reading.all(DynamoComponentDeployment, namespace=namespace):
        found.setdefault(each.metadata.namespace, []).append(each)
    return found


async def _changes(
    reading: Reading,
    component: DynamoComponentDeployment,
    facts: Facts,
    settings: RenderSettings,
) -> bool:
    for wanted in component_objects(component, facts, settings):
        for kind in _WORKLOADS:
            if wanted["kind"] != kind.name:
                continue
            live = await reading.raw(kind, key_of(wanted))
            if live is not None:
                after = await reading.applied(kind, wanted)
                if list(_templates(live)) != list(_templates(after)):
                    return True
    return False


def _templates(workload: Object) -> Iterator[Object]:
    """What pods are made from: of a Deployment, or of the leader and the workers of a group."""
    spec = workload["spec"]
    yield from (
        each
        for holder in (spec, spec.get("leaderWorkerTemplate", {}))
        for key in ("template", "leaderTemplate", "workerTemplate")
        if (each := holder.get(key))
    )
