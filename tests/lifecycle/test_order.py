"""What the operator writes first, so that it may stop between any two writes."""

import asyncio

from cluster.graph.graphs import graph
from dynamo_operator.shared.cluster import PodClique, PodCliqueScalingGroup, PodCliqueSet
from lifecycle.running import GRAPH, REST_SECONDS, running
from simulated.clock import on_simulated_clock

GROVE = (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND)


@on_simulated_clock
async def test_the_provider_of_a_graph_is_recorded_before_anything_is_created_for_it() -> None:
    async with running(installed=GROVE) as world:
        before = len(world.writes())
        world.create(GRAPH, graph())
        await asyncio.sleep(REST_SECONDS)
        first, *others = (write for write in world.writes()[before:] if "/events" not in write)
        assert first.endswith(f"/{GRAPH.plural}/chat")
        assert any(f"/{PodCliqueSet.KIND.plural}/" in write for write in others)
