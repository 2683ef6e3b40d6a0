"""Documents that once blocked the operator for seconds or hours: each is validated and rendered at once.

What is measured is the processor's time of this thread, which other work on the machine does not add to; the
best of three counts. The limits are a tenth of what these documents cost before, or less.
"""

import pytest

from adversary.growth import seconds
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object
from reviews.asking import verdict
from reviews.rows import component, graph, with_service, worker
from specs import IMAGE, a_graph

SETTINGS = RenderSettings(mpi_secret_name="mpi-keys")


def alike(number: int) -> str:
    return f"{'service-of-a-graph-' * 10}{number}"


def ordered(services: int, names: int, length: int = 190) -> Object:
    """A graph whose services are restarted in an order of other names, which look like theirs."""
    order = [f"x{alike(number)}"[:length] for number in range(names)]
    many = {alike(number)[-length:]: worker() for number in range(services)}
    return graph(many, restart={"id": "1", "strategy": {"order": order}})


@pytest.mark.parametrize(
    ("services", "names", "length"), [(150, 100, 190), (25, 100, 190), (25, 100, 63), (25, 100, 40)]
)
def test_an_order_of_many_names_that_look_alike_is_judged_quickly(
    services: int, names: int, length: int
) -> None:
    document = ordered(services, names, length)
    assert not verdict(document).allowed
    assert seconds(lambda: verdict(document), runs=3) < 0.3


def test_a_name_of_350000_letters_is_judged_quickly() -> None:
    long = "ab" * 175_000
    order = {"id": "1", "strategy": {"order": [f"{long}c"]}}
    document = graph({long: worker()}, restart=order)
    assert not verdict(document).allowed
    assert seconds(lambda: verdict(document), runs=3) < 0.5
    stored = a_graph({long: worker()}, restart=order)
    paths = {each.path for each in graph_problems(stored, SETTINGS)}
    assert {"spec.services", "spec.restart.strategy.order"} == paths
    assert seconds(lambda: graph_problems(stored, SETTINGS), runs=3) < 0.1


WRONG: dict[str, Object] = {
    "resources": with_service(
        resources={"requests": {"custom": {f"a{number}": "x" for number in range(4000)}}}
    ),
    "containers": with_service(
        extraPodSpec={
            "mainContainer": {"image": IMAGE},
            "containers": [{"name": "A_", "image": "x"} for _ in range(2000)],
        }
    ),
    "variables": with_service(envs=[{"value": "x"} for _ in range(4000)]),
    "labels": component(labels={f"a{number}": "b c" for number in range(4000)}),
    "mounts": component(
        volumeMounts=[{"name": "c" * 40_000, "mountPoint": "/x"}]
        + [{"name": "d", "mountPoint": "/x"} for _ in range(800)]
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_an_update_of_what_was_wrong_in_thousands_of_places_is_judged_quickly(wrong: Object) -> None:
    labelled = {**wrong, "metadata": {**wrong["metadata"], "labels": {"team": "a"}}}
    found = verdict(labelled, wrong)
    assert found.allowed
    assert 800 <= len(found.warning_problems)
    assert seconds(lambda: verdict(labelled, wrong), runs=3) < 0.6
