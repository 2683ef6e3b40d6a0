"""Rules that hold without an operator: the API server has them from the CRDs."""

from collections.abc import Iterator

import pytest

from cluster.admission.asking import Asker
from cluster.world import World
from dynamo_operator.crds import RESOURCES
from kube_runtime.types.meta import Object
from reviews.rows import ROWS, Row, graph, worker

pytestmark = pytest.mark.usefixtures("account")  # it makes the namespace
KINDS = {each.KIND.name: each.KIND for each in RESOURCES}
CHANGES = [row for row in ROWS if row.by_schema and row.old is not None]


@pytest.fixture
def nobody(asker: Asker) -> Iterator[Asker]:
    """The API server, with our CRDs and without an operator."""
    yield asker
    for kind in KINDS.values():
        asker.delete(kind, "lab", "chat")


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: f"{row.id}-{row.new['kind']}")
def test_what_may_not_change_cannot_without_webhooks_either(row: Row, nobody: Asker, lab: World) -> None:
    kind = KINDS[row.new["kind"]]
    assert row.old is not None
    lab.gone(kind, "chat")
    assert 201 == nobody.create(kind, row.old, is_tried_only=False).code
    told = nobody.replace(kind, row.new)
    assert (422, True) == (told.code, row.by_schema in told.text), told.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (graph(backendFramework="vllm"), graph(backendFramework="vllm", envs=[])),
        (graph(), graph({"w": worker(multinode=None)})),
        (graph({"w": worker(multinode={"nodeCount": 2})}), graph({"w": worker(multinode={"nodeCount": 4})})),
        (graph(), graph({"w": worker(), "b": worker(multinode={"nodeCount": 2})})),
    ],
    ids=["same", "null", "more nodes", "another service"],
)
def test_what_may_change_can(before: Object, after: Object, nobody: Asker, lab: World) -> None:
    kind = KINDS["DynamoGraphDeployment"]
    lab.gone(kind, "chat")
    assert 201 == nobody.create(kind, before, is_tried_only=False).code
    told = nobody.replace(kind, after)
    assert 200 == told.code, told.text
