"""The rules of the charts allow every write of the operator; on the cluster a role is tried as well."""

import asyncio
from typing import Any

from cluster.graph.graphs import graph, service, worker
from dynamo_operator import labels
from dynamoctl.installation.permissions import RULES
from kube_runtime.client.client import Request
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock
from simulated.server import Target

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
