"""Every refused write is reported, and the rules of the charts allow every write.

Each kind that the operator writes is refused in turn while everything else is admitted. The object of the
user names the first cause, everything that does not depend on it exists, and all heals.
"""

import asyncio
from typing import Any

import pytest

from cluster.graph.graphs import graph, service, worker
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import LEADER_WORKER_SET, LeaderWorkerSet, PodGroup
from dynamoctl.installation.permissions import RULES
from kube_runtime.client.client import Request
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Object
from lifecycle.refusing import TEXT, Admission, cases, created
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock
from simulated.server import Target, status

WITHIN_SECONDS = 10.0
RETRY_SECONDS = 150.0
EVENTS = "/api/v1/events"
COMMON = "controllerrevisions rolebindings roles serviceaccounts"
PLAIN = f"{COMMON} dynamocomponentdeployments deployments services"
WRITTEN = {
    "scaled": f"{PLAIN} dynamographdeploymentscalingadapters",
    "planner": PLAIN,
    "endpoint picker": f"{PLAIN} configmaps inferencepools",
    "ingress": f"{PLAIN} ingresses",
    "virtual service": f"{PLAIN} virtualservices",
    "groups": f"{COMMON} dynamocomponentdeployments services leaderworkersets podgroups",
    "model": PLAIN,
    "claims": f"{PLAIN} persistentvolumeclaims",
    "budget": f"{PLAIN} poddisruptionbudgets",
    "Grove": f"{COMMON} services podcliquesets",
    "request": "jobs rolebindings serviceaccounts",
    "older graph": "dynamonimdeployments deployments services",
    "older graph without its image": "dynamonimdeployments dynamonimrequests",
    "older component": "deployments services horizontalpodautoscalers persistentvolumeclaims",
}
"""The kinds that the operator writes in each case; each test ends with all of them."""
DEPENDENTS = {
    "roles": "rolebindings",
    "dynamocomponentdeployments": "deployments services ingresses virtualservices leaderworkersets "
    "podgroups configmaps inferencepools poddisruptionbudgets",
    "dynamonimdeployments": "deployments services",
    "serviceaccounts": "jobs",
    "rolebindings": "jobs",
}
"""The kinds that cannot exist before those of a kind, or that the operator does not create before them."""
REFUSALS: dict[str, Object] = {
    "forbidden": status(403, "Forbidden", f'User "operator" cannot create it: {TEXT}'),
    "quota": status(403, "Forbidden", f"exceeded quota: {TEXT}"),
    "terminating namespace": status(403, "Forbidden", f"is being terminated: {TEXT}"),
    "missing namespace": status(404, "NotFound", f'namespaces "default" not found: {TEXT}'),
    "invalid": status(422, "Invalid", f"spec: Invalid value: field is immutable: {TEXT}"),
    "too large": status(413, "RequestEntityTooLarge", f"limit is 3145728: {TEXT}"),
    "webhook, 400": status(400, "", f'admission webhook "w" denied the request: {TEXT}'),
    "webhook, 409": status(409, "Conflict", f'admission webhook "w" denied the request: {TEXT}'),
    "webhook, 429": status(429, "", f'admission webhook "w" denied the request: {TEXT}'),
    "webhook, 500": status(500, "", f'admission webhook "w" denied the request: {TEXT}'),
    "policy, 401": status(
        *(401, "Unauthorized"),
        f"is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {TEXT}",
    ),
    "webhook that is down": status(500, "InternalError", f"failed calling webhook: {TEXT}"),
    "webhook that is slow": status(504, "Timeout", f"request did not complete: {TEXT}"),
}


@on_simulated_clock
async def refused(name: str, plural: str, refusal: str) -> None:
    case = cases()[name]
    async with case.running() as world:
        admission = world.server.refuse = Admission(world.server.storage)
        admission.refuse(plural, REFUSALS[refusal])
        case.create(world)
        await asyncio.sleep(WITHIN_SECONDS)
        reported = case.reported(world)
        assert TEXT in reported
        first, _, _ = reported.partition(TEXT)
        assert "waits for" not in first
        assert TEXT in case.why(world)
        warnings = [
            event["message"]
            for event in world.server.storage.objects[EVENTS].values()
            if event["type"] == "Warning"
        ]
        assert TEXT in "".join(warnings)
        assert "waits for" not in "".join(warnings)
        excused = {plural, *DEPENDENTS.get(plural, "").split()}
        assert set(WRITTEN[name].split()) - excused <= set(created(world, case))
        admission.refuse("", {})
        await asyncio.sleep(RETRY_SECONDS)
        assert TEXT not in case.reported(world)
        assert set(WRITTEN[name].split()) == set(created(world, case))


@pytest.mark.parametrize(
    ("name", "plural"), [(name, plural) for name, plurals in WRITTEN.items() for plural in plurals.split()]
)
def test_a_refused_kind_is_the_cause_that_the_user_reads(name: str, plural: str) -> None:
    refused(name, plural, "forbidden")


RICHEST = max(WRITTEN, key=lambda name: len(WRITTEN[name].split()))


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("plural", WRITTEN[RICHEST].split())
def test_each_refusal_is_the_cause_that_the_user_reads(plural: str, refusal: str) -> None:
    refused(RICHEST, plural, refusal)


@on_simulated_clock
async def test_groups_over_the_desired_number_are_deleted_although_a_name_is_taken() -> None:
    async with running(installed=LEADER_WORKER_SET.kinds) as world:
        kind, spread = DynamoGraphDeployment.KIND, worker("decode", replicas=3, multinode={"nodeCount": 2})
        world.create(kind, graph(Decode=spread))
        await asyncio.sleep(WITHIN_SECONDS)
        world.change(Service.KIND, "chat-decode", {"metadata": {"ownerReferences": None}})
        world.change(kind, "chat", {"spec": {"services": {"Decode": {"replicas": 1}}}})
        await asyncio.sleep(WITHIN_SECONDS)
        assert "name_conflict" == world.read(kind, "chat")["status"]["conditions"][0]["reason"]
        assert ["chat-decode-0"] == world.names(LeaderWorkerSet.KIND) == world.names(PodGroup.KIND)


@on_simulated_clock
async def test_a_refused_record_on_the_graph_itself_is_reported() -> None:
    case = cases()["Grove"]
    async with case.running() as world:
        admission = world.server.refuse = Admission(world.server.storage)
        admission.refuse("dynamographdeployments", REFUSALS["forbidden"])
        case.create(world)
        await asyncio.sleep(WITHIN_SECONDS)
        assert "podcliquesets" not in created(world, case), "made before its provider was recorded"
        assert f"DynamoGraphDeployment chat: {REFUSALS['forbidden']['message']}" in case.reported(world)
        written = len(world.writes())
        await asyncio.sleep(RETRY_SECONDS)
        assert len(world.writes()) - written <= 2, "a loop of retries"
        admission.refuse("", {})
        await asyncio.sleep(RETRY_SECONDS)
        assert TEXT not in case.reported(world)
        assert "podcliquesets" in created(world, case)


_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def is_allowed(request: Request) -> bool:
    """Whether a rule has the verb and the resource, whatever names the rule has."""
    target, verb = Target.of(request.path), _VERBS[request.method]
    _, kind, *rest = target.collection.split("/")
    group = rest[0] if kind == "apis" else ""
    resource = "/".join(filter(None, (rest[-1], target.subresource)))
    return any(rule.group == group and resource in rule.resources and verb in rule.verbs for rule in RULES)


async def rolled_out(world: Running) -> None:
    """Create a graph with managed rollouts, and change its worker once it runs.

    The old worker is scaled down at once: a rolling replacement waits by the clock of the wall.
    """
    adapted = {"scalingAdapter": {"enabled": True}}
    recreated = {"annotations": {labels.STRATEGY: "Recreate"}}
    desired: dict[str, Any] = graph(
        Frontend=service("frontend", **adapted), Decode=worker("decode", **recreated)
    )
    desired["metadata"]["annotations"] = {labels.WORKER_ROLLOUT: "managed"}
    world.create(GRAPH, desired)
    await asyncio.sleep(REST_SECONDS)
    await world.deployments_run()
    env = [{"name": "A", "value": "b"}]
    world.change(GRAPH, "chat", {"spec": {"services": {"Decode": {"envs": env}}}})
    await asyncio.sleep(REST_SECONDS)
    for _ in range(3):
        await world.deployments_run()


@on_simulated_clock
async def test_the_rules_of_the_charts_allow_what_the_operator_writes() -> None:
    async with running() as world:
        await rolled_out(world)
        writes = [request for request in world.server.requests if request.method != "GET"]
        assert any(f"{COMPONENT.plural}/" in each.path and each.path.endswith("/scale") for each in writes)
        assert set() == {f"{each.method} {each.path}" for each in writes if not is_allowed(each)}
