"""What is just below the size limit blocks the event loop in no step; groups are never all in memory."""

import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import pytest

from adversary.growth import is_steep, seconds
from cluster.operator_process import OperatorProcess
from cluster.world import COMPONENT, World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.objects import canonical
from dynamo_operator.component.render import component_parts
from dynamo_operator.component.validate import component_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.apply.drift import has_no_drift, without_emptied
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object, content, content_of, differ_in_size_only
from specs import IMAGE, a_component

SETTINGS = RenderSettings()
BYTES = SETTINGS.largest_object_bytes * 9 // 10
STALL_SECONDS = 0.1
"""The worst is 0.045 s; CPU time also grows on a machine whose cores are shared."""
ITEMS: dict[str, Callable[[int], Object | str]] = {
    "envs": lambda number: {"name": f"V{number}", "value": "x"},
    "volumes": lambda number: {"name": f"v{number}", "emptyDir": {}},
    "args": lambda _: "-a",
    "tolerations": lambda _: {},
    "env": lambda number: {"name": f"V{number}", "value": "x"},
    "volumeMounts": lambda number: {"name": f"v{number}", "mountPath": f"/{number}"},
    "ports": lambda number: {"containerPort": number, "protocol": "TCP"},
}
OF_COMPONENTS = ("envs", "volumes", "args", "tolerations")
OF_CONTAINERS = ("env", "volumeMounts", "args", "ports")
STORED = ("envs", "args")
"""The API server itself needs more than 30 s to apply that many volumes or tolerations."""


def items(name: str, size: int) -> list[Object | str]:
    """Items of a list of about so many bytes."""
    count = size // (len(msgspec.json.encode(ITEMS[name](1000))) + 1)
    return [ITEMS[name](number) for number in range(count)]


def spec(name: str, size: int) -> Object:
    """A component's spec of about so many bytes, nearly all of them in one list."""
    pod: Object = {"mainContainer": {"image": "r/i:1", "args": ["-m", "a"]}}
    found: Object = {"modelRef": {"name": "acme/chat-7b"}, "componentType": "worker", "extraPodSpec": pod}
    place = {"envs": found, "args": pod["mainContainer"]}.get(name, pod)
    place[name] = items(name, size)
    return found


def rendering(name: str, size: int) -> Callable[[], object]:
    """What the event loop validates and renders of a component."""
    body = {"metadata": {"name": "c", "namespace": "n"}, "spec": spec(name, size)}
    component = msgspec.convert(body, DynamoComponentDeployment)

    def validate_and_render() -> object:
        problems = tuple(component_problems(component, SETTINGS))
        around, workloads = component_parts(component, Facts(), SETTINGS)
        return problems, around, tuple(workloads)

    return validate_and_render


def a_deployment(name: str, size: int) -> Object:
    """A Deployment of that many bytes, nearly all of them in a list of its container."""
    container = {"name": "main", "image": "i", name: items(name, size)}
    metadata = {"name": "d", "namespace": "n", "annotations": {}}
    whole = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": whole}


def comparing(name: str, size: int) -> Callable[[], object]:
    """What the event loop does in one step once the API server has answered an apply."""
    body = a_deployment(name, size)
    live = msgspec.json.decode(msgspec.json.encode(body), type=Deployment)

    def compare() -> None:
        assert has_no_drift(content(body), content_of(live))
        assert not differ_in_size_only(live, live, but_for=())

    return compare


def emptying(name: str, size: int) -> Callable[[], object]:
    """What it does once the API server has refused one."""
    body = a_deployment(name, size)
    return lambda: without_emptied(body, body)


WORK = [
    *((rendering, name) for name in OF_COMPONENTS),
    *((work, name) for work in (comparing, emptying) for name in OF_CONTAINERS),
]


@pytest.mark.parametrize(("work", "name"), WORK)
def test_the_largest_component_is_worked_on_in_a_step_that_is_no_stall(
    work: Callable[[str, int], Callable[[], object]], name: str
) -> None:
    assert not is_steep(partial(work, name), BYTES // 8)
    assert seconds(work(name, BYTES), runs=5) < STALL_SECONDS


@pytest.mark.cluster
def test_components_below_the_limit_are_reconciled(world: World, operator: OperatorProcess) -> None:
    for name in STORED:
        world.create(COMPONENT, {"metadata": {"name": name}, "spec": spec(name, BYTES)})
    for name in STORED:
        world.eventually(COMPONENT, name, lambda found: "conditions" in found.get("status", {}))


MEBIBYTE = 1024 * 1024


def wide(replicas: int, **fields: Any) -> DynamoComponentDeployment:
    """A component over two nodes, as large as its CRD allows."""
    env = [{"name": f"NAME_{number}", "value": "x" * 5} for number in range(4000)]
    main = {"image": IMAGE, "args": ["run"], "env": env}
    return a_component(
        replicas=replicas, multinode={"nodeCount": 2}, extraPodSpec={"mainContainer": main}, **fields
    )


def workloads(component: DynamoComponentDeployment) -> Iterable[Object]:
    return component_parts(component, Facts(), SETTINGS)[1]


def peak_bytes(call: Callable[[], object]) -> int:
    """The most memory that a call has at one time, beyond what there was before."""
    call()  # what is imported and remembered for good does not count
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_groups_are_rendered_one_by_one_and_share_their_templates() -> None:
    many = wide(320)

    def read_one_by_one() -> int:
        return sum(1 for _ in workloads(many))

    assert read_one_by_one() == 640
    assert peak_bytes(read_one_by_one) < 30 * MEBIBYTE
    assert peak_bytes(lambda: list(workloads(many))) < 30 * MEBIBYTE


def test_labels_of_a_users_own_are_never_copied_for_all_groups_together() -> None:
    labels = {f"a{number}": "" for number in range(4000)}
    many = wide(320, labels=labels, annotations=labels)

    def read_one_by_one() -> int:
        return sum(1 for _ in workloads(many))

    assert peak_bytes(read_one_by_one) < 40 * MEBIBYTE


def test_a_group_is_what_one_pass_over_everything_would_make_of_it() -> None:
    found = workloads(wide(3, labels={"z": "1", "a": "2"}))
    assert list(found) == list(found), "each pass renders them anew"
    for each in found:
        assert list(_keys(canonical(each))) == list(_keys(each))
    names = [each["metadata"]["name"] for each in found if each["kind"] == "LeaderWorkerSet"]
    assert ["w-0", "w-1", "w-2"] == names


def _keys(value: Any) -> list[Any]:
    """Everything in a value, in the order in which it is written."""
    if isinstance(value, dict):
        pairs: Object = value
        return [(name, _keys(each)) for name, each in pairs.items()]
    return [_keys(each) for each in value] if isinstance(value, list) else [value]
