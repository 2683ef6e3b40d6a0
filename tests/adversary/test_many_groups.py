"""A component of 144 kB with 320 replicas over several nodes: its groups are never in memory together."""

import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.objects import canonical
from dynamo_operator.component.render import component_parts
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import IMAGE, a_component

MEBIBYTE = 1024 * 1024
SETTINGS = RenderSettings()


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
