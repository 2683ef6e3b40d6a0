"""What is done to a graph, and how one sees that the operator is through with it: one entry for each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cluster.conditions import condition, is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.world import ADAPTER, COMPONENT, DEPLOYMENT, GRAPH, SERVICE, World
from dynamo_operator import labels
from kube_runtime.types.meta import Kind, Object

NEWER = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.1"


def a_graph(**services: Object) -> Object:
    """A frontend and a worker, small enough that many fit on the nodes, and further services."""
    usual = {"Frontend": service("frontend"), "Decode": worker("decode", resources=None)}
    return graph("chat", **{**usual, **services})


def is_quite_ready(world: World) -> bool:
    body = world.get(GRAPH, "chat")
    return body is not None and is_ready(body)


def is_made_anew(world: World) -> bool:
    """Whether the frontend, of which something was deleted, is whole again and the graph ready."""
    component, deployment = (world.get(COMPONENT, "chat-frontend"), world.get(DEPLOYMENT, "chat-frontend"))
    if component is None or deployment is None or "deletionTimestamp" in component["metadata"]:
        return False
    owners = [each["uid"] for each in deployment["metadata"].get("ownerReferences", ())]
    is_available = deployment.get("status", {}).get("availableReplicas") == deployment["spec"]["replicas"]
    return [component["metadata"]["uid"]] == owners and is_available and is_quite_ready(world)


def is_gone(world: World) -> bool:
    kinds = (GRAPH, COMPONENT, DEPLOYMENT, SERVICE)
    return not any(world.list(kind) for kind in kinds)


def is_suspended(world: World) -> bool:
    body = world.get(GRAPH, "chat")
    return body is not None and condition(body, "Suspended").get("status") == "True"


def is_completed(field: str, world: World) -> bool:
    body = world.get(GRAPH, "chat")
    return body is not None and is_ready(body) and body["status"].get(field, {}).get("phase") == "Completed"


is_restarted = partial(is_completed, "restart")
is_rolled_out = partial(is_completed, "rollingUpdate")


def is_scaled(world: World) -> bool:
    """Whether the number that the adapter was given has reached the graph and the pods."""
    body, adapter = world.get(GRAPH, "chat"), world.get(ADAPTER, "chat-decode")
    if body is None or adapter is None or not is_ready(body):
        return False
    numbers = (body["spec"]["services"]["Decode"]["replicas"], adapter.get("status", {}).get("replicas"))
    return numbers == (2, 2)


@dataclass(frozen=True, eq=False)
class Scenario:
    """`before` is the object of that kind that is there and settled. None means: none.

    `beside` are the kinds and objects of the user that are there as well, from the beginning.
    """

    name: str
    before: Object | None
    act: Callable[[World], object]
    is_over: Callable[[World], bool] = is_quite_ready
    is_prepared: Callable[[World], bool] = is_quite_ready
    kind: Kind = GRAPH
    beside: tuple[tuple[Kind, Object], ...] = ()

    def set_up(self, world: World) -> None:
        for kind, body in self.beside:
            world.create(kind, body)
        if self.before is not None:
            world.create(self.kind, self.before)

    def __str__(self) -> str:
        return self.name


def annotated(name: str, value: str) -> Object:
    """That graph with an annotation."""
    return {**a_graph(), "metadata": {"name": "chat", "annotations": {name: value}}}


def edit(**fields: object) -> Callable[[World], object]:
    return lambda world: world.patch(GRAPH, "chat", {"spec": fields})


def edit_service(key: str, fields: Object | None) -> Callable[[World], object]:
    """Have the user change fields of a service. None means: take it away."""
    return edit(services={key: fields})


def annotate(name: str, value: str | None) -> Callable[[World], object]:
    return lambda world: world.patch(GRAPH, "chat", {"metadata": {"annotations": {name: value}}})


IMAGE = {"extraPodSpec": {"mainContainer": {"image": NEWER}}}
PREFILL = worker("prefill", resources=None)
ADAPTED = {"scalingAdapter": {"enabled": True}}
RESTART = {"id": "one", "strategy": {"type": "Sequential"}}


def create(body: Object) -> Callable[[World], object]:
    return lambda world: world.create(GRAPH, body)


def delete(world: World) -> None:
    world.delete(GRAPH, "chat")


SCENARIOS = (
    Scenario("create", None, create(a_graph())),
    Scenario("edit the image of a frontend", a_graph(), edit_service("Frontend", IMAGE)),
    Scenario("edit the image of a worker", a_graph(), edit_service("Decode", IMAGE)),
    Scenario("scale a service", a_graph(), edit_service("Decode", {"replicas": 2})),
    Scenario("scale the graph", a_graph(), edit(replicas=2)),
    Scenario("add a service", a_graph(), edit_service("Prefill", PREFILL)),
    Scenario("remove a service", a_graph(Prefill=PREFILL), edit_service("Prefill", None)),
    Scenario("restart", a_graph(), edit(restart=RESTART), is_restarted),
    Scenario("suspend", a_graph(), annotate(labels.SUSPEND, "true"), is_suspended),
    Scenario(
        "resume", annotated(labels.SUSPEND, "true"), annotate(labels.SUSPEND, None), is_prepared=is_suspended
    ),
    Scenario("enable a scaling adapter", a_graph(), edit_service("Decode", ADAPTED)),
    Scenario(
        "scale through an adapter",
        a_graph(Decode=worker("decode", resources=None, **ADAPTED)),
        lambda world: world.patch(ADAPTER, "chat-decode", {"spec": {"replicas": 2}}),
        is_scaled,
    ),
    Scenario(
        "roll out workers, managed",
        annotated(labels.WORKER_ROLLOUT, "managed"),
        edit_service("Decode", IMAGE),
        is_rolled_out,
    ),
    Scenario(
        "a worker leaves its generation",
        annotated(labels.WORKER_ROLLOUT, "managed"),
        edit_service("Decode", {"globalDynamoNamespace": True}),
        is_rolled_out,
    ),
    Scenario(
        "a worker enters a generation",
        {
            **a_graph(Decode=worker("decode", resources=None, globalDynamoNamespace=True)),
            "metadata": {"name": "chat", "annotations": {labels.WORKER_ROLLOUT: "managed"}},
        },
        edit_service("Decode", {"globalDynamoNamespace": False}),
        is_rolled_out,
    ),
    Scenario(
        "delete a workload by hand",
        a_graph(),
        lambda world: world.delete(DEPLOYMENT, "chat-frontend"),
        is_made_anew,
    ),
    Scenario(
        "delete a component by hand",
        a_graph(),
        lambda world: world.delete(COMPONENT, "chat-frontend"),
        is_made_anew,
    ),
    Scenario("delete", a_graph(), delete, is_gone),
)


def over_nodes(where: str) -> tuple[Scenario, ...]:
    """Steps of a graph whose worker spans two nodes; `where` distinguishes such tuples."""
    wide = a_graph(Decode=worker("decode", resources=None, multinode={"nodeCount": 2}))
    return (
        Scenario(f"create {where}", None, create(wide)),
        Scenario(f"edit the image {where}", wide, edit_service("Decode", IMAGE)),
        Scenario(f"scale {where}", wide, edit_service("Decode", {"replicas": 2})),
        Scenario(f"delete {where}", wide, delete, is_gone),
    )
