"""What workers go through over a graph's life: they enter revisions, leave them, and keep serving.

The tests are unfair: every pass may be cut short after any of its writes, the user edits at any moment,
pods come late and die early; and after each single write the promise must hold.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.service import component_object
from dynamo_operator.features.rollouts.feature import observed_revisions
from dynamo_operator.features.rollouts.plan import Rollout, budget, is_recreated, plan_rollout
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object
from specs import a_graph, a_service

SETTINGS = RenderSettings()
OWNER = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": "uid", "controller": True}
LONG_AGO = "2026-01-01T00:00:00Z"
WORKERS = ("Decode", "Prefill")
STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    {labels.STRATEGY: "Recreate"},
    {labels.MAX_SURGE: "0", labels.MAX_UNAVAILABLE: "2"},
    {labels.MAX_SURGE: "2", labels.MAX_UNAVAILABLE: "0"},
)


@dataclass
class Component:
    """A component that exists; its pods are flags: does it serve?"""

    body: Object
    born: int
    pods: list[bool] = field(default_factory=list)

    @property
    def asked(self) -> int:
        found: int = self.body["spec"].get("replicas", 1)
        return found

    def is_given_pods(self) -> None:
        """The workload's controller acts. An edit in place keeps what serves: that is its own promise."""
        kept = sorted(self.pods, reverse=True)[: self.asked]
        self.pods = [*kept, *[False] * (self.asked - len(kept))]

    def read(self) -> DynamoComponentDeployment:
        is_group = self.body["spec"].get("multinode") is not None
        serving = "readyReplicas" if is_group else "availableReplicas"
        counts = {
            "componentKind": "LeaderWorkerSet" if is_group else "Deployment",
            "componentName": "x",
            "replicas": len(self.pods),
            "updatedReplicas": len(self.pods),
            serving: sum(self.pods),
        }
        told = {
            "type": "Available",
            "status": "True" if all(self.pods) else "False",
            "lastTransitionTime": LONG_AGO,
        }
        metadata = {
            **self.body["metadata"],
            "ownerReferences": [OWNER],
            "creationTimestamp": f"2026-01-01T00:{self.born // 60:02}:{self.born % 60:02}Z",
        }
        status = {"conditions": [told], "service": counts}
        body = {**self.body, "metadata": metadata, "status": status}
        return msgspec.convert(body, DynamoComponentDeployment)


@dataclass
class World:
    """A graph, its components, and a user who edits."""

    annotations: dict[str, str]
    services: dict[str, Object]
    components: dict[str, Component] = field(default_factory=dict)
    births: int = 0
    wanted: set[str] = field(default_factory=set[str])

    def graph(self) -> DynamoGraphDeployment:
        metadata = {"uid": "uid", "annotations": self.annotations}
        services = {"Frontend": a_service("frontend", replicas=1), **self.services}
        return a_graph(services, metadata=metadata)

    def plan(self) -> Rollout:
        graph, components = self.graph(), [each.read() for each in self.components.values()]
        found = observed_revisions(graph, components, SETTINGS)
        return plan_rollout(graph, found, datetime.now(UTC))

    def writes(self) -> Iterator[None]:
        """A pass of the operator, write by write."""
        rollout, graph = self.plan(), self.graph()
        services = sorted(graph.spec.services)
        objects = [component_object(graph, key, SETTINGS, rollout.workers) for key in services]
        wanted = {each["metadata"]["name"]: each for each in objects}
        for name, body in wanted.items():
            self._apply(name, body)
            yield
        spared = {key.name for _, key in rollout.spared}
        for name in [*self.components]:
            if name not in wanted and name not in spared:
                del self.components[name]
                yield
        for component, replicas in rollout.resized:
            self.components[component.metadata.name].body["spec"]["replicas"] = replicas
            self.components[component.metadata.name].is_given_pods()
            yield
        if not rollout.revisions.is_rolling_out:
            self.annotations.pop(labels.CURRENT_WORKER_HASH, None)
            if rollout.target_hash:
                self.annotations[labels.CURRENT_WORKER_HASH] = rollout.target_hash
        self.wanted = set(wanted)

    def _apply(self, name: str, body: Object) -> None:
        if name not in self.components:
            self.births += 1
            self.components[name] = Component(body, self.births)
        component = self.components[name]
        component.body = {**body, "spec": dict(body["spec"])}
        component.is_given_pods()

    def serving(self) -> dict[str, int]:
        return self._by_service(lambda each: sum(each.pods))

    def asked(self) -> dict[str, int]:
        return self._by_service(lambda each: each.asked)

    def _by_service(self, number: Callable[[Component], int]) -> dict[str, int]:
        found = dict.fromkeys(self.services, 0)
        for each in self.components.values():
            key = each.body["spec"]["serviceName"]
            if key in found:
                found[key] += number(each)
        return found

    def bounds(self) -> Iterator[tuple[str, int, int]]:
        """The fewest replicas of each service that may serve, and the most that may be asked for."""
        for key, service in self.graph().spec.services.items():
            wanted = service.replicas or 0
            allowed = budget(service, wanted)
            is_free = is_recreated(service)
            if key in self.services:
                yield key, 0 if is_free else wanted - allowed.unavailable, wanted + allowed.surge

    def passes(self, most: int | None = None) -> None:
        """One pass, or so many of its writes; after each of them the promises hold."""
        before, asked, bounds = self.serving(), self.asked(), list(self.bounds())
        for done, _ in enumerate(self.writes(), start=1):
            after = self.serving()
            for key, floor, cap in bounds:
                assert min(floor, before[key]) <= after[key], (key, floor, before, after)
                assert self.asked()[key] <= max(cap, asked[key]), (key, cap, asked, self.asked())
            before = after
            if done == most:
                return

    def pods_start(self) -> None:
        for each in self.components.values():
            each.pods = [True] * len(each.pods)

    def state(self) -> str:
        """All that there is, to see whether anything moves."""
        return repr((self.annotations, self.components))

    def settles(self) -> None:
        before = None
        for _ in range(60):
            if before == (before := self.state()):
                break
            self.passes()
            self.pods_start()
        assert self.wanted == set(self.components)
        wanted = {key: each["replicas"] for key, each in self.services.items()}
        assert wanted == self.serving()


def edited(world: World, data: st.DataObject) -> None:
    edits = ("mode", "global", "global", "replicas", "content", "note", "strategy")
    what = data.draw(st.sampled_from(edits))
    service = world.services[data.draw(st.sampled_from(WORKERS))]
    if what == "mode":
        mode = data.draw(st.sampled_from(("managed", "native")))
        world.annotations[labels.WORKER_ROLLOUT] = mode
    elif what == "global":
        service["globalDynamoNamespace"] = data.draw(st.booleans())
    elif what == "replicas":
        service["replicas"] = data.draw(st.integers(0, 4))
    elif what == "content":
        service["envs"] = [{"name": "A", "value": str(data.draw(st.integers(0, 2)))}]
    elif what == "strategy":
        service["annotations"] = data.draw(st.sampled_from(STRATEGIES))
    elif what == "note":
        world.annotations.pop(labels.CURRENT_WORKER_HASH, None)


def something(world: World, data: st.DataObject) -> None:
    """An edit, a pass or part of one, or pods that come or die."""
    events = ("edit", "edit", "pass", "pass", "pass", "part", "start", "die")
    event = data.draw(st.sampled_from(events))
    if event == "edit":
        edited(world, data)
    elif event == "pass":
        world.passes()
    elif event == "part":
        world.passes(data.draw(st.integers(1, 4)))
    elif world.components:
        name: str = data.draw(st.sampled_from(sorted(world.components)))
        pods = world.components[name].pods
        pods[:] = [event == "start"] * len(pods)


def a_world(mode: str = "managed", **decode: Any) -> World:
    services = {"Decode": a_service("decode", replicas=4), "Prefill": a_service("prefill", replicas=2)}
    services["Decode"] |= decode
    return World({labels.WORKER_ROLLOUT: mode}, services)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(("managed", "native")), st.booleans(), st.data())
def test_whatever_is_edited_workers_serve_as_promised_and_the_end_is_what_is_wanted(
    mode: str, is_global: bool, data: st.DataObject
) -> None:
    world = a_world(mode, globalDynamoNamespace=is_global)
    world.settles()
    for _ in range(data.draw(st.integers(4, 20))):
        something(world, data)
    world.settles()


def settled(mode: str = "managed", **decode: Any) -> World:
    world = a_world(mode, **decode)
    world.settles()
    return world


def test_a_worker_that_leaves_after_managed_rollouts_were_turned_off_serves_until_then() -> None:
    world = settled()
    world.annotations[labels.WORKER_ROLLOUT] = "native"
    world.settles()
    for each in world.services.values():
        each["globalDynamoNamespace"] = True
    world.passes()
    assert {"Decode": 3, "Prefill": 2} == world.serving()
    world.settles()
    assert labels.CURRENT_WORKER_HASH not in world.annotations


def test_a_worker_that_comes_to_run_on_several_nodes_is_replaced_step_by_step() -> None:
    world = settled()
    world.services["Decode"]["multinode"] = {"nodeCount": 2}
    world.passes()
    assert 3 <= world.serving()["Decode"] < 4 + 1
    world.settles()
    world.services["Decode"]["multinode"] = None
    world.passes()
    assert 3 <= world.serving()["Decode"]
    world.settles()
