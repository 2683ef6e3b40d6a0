"""A new graph is validated for the workload provider that its controller will choose."""

from collections.abc import Iterator

import pytest

from cluster.admission.conftest import Install, Installation
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.world import GRAPH
from dynamo_operator import labels
from dynamo_operator.shared.cluster import GROVE
from kube_runtime.types.meta import Object
from reviews.rows import graph

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def on_grove(kinds: ControlPlane, install: Install) -> Iterator[Installation]:
    with installed(kinds, ("grove",), GROVE.kinds), install() as found:
        yield found


def queued(**annotations: str) -> Object:
    """A graph with a queue that only Grove uses, and that cannot be a label."""
    found = graph()
    wanted = {labels.KAI_QUEUE: "not a queue", **annotations}
    return {**found, "metadata": {**found["metadata"], "annotations": wanted}}


def test_what_grove_cannot_run_is_refused_where_grove_will_run_it(on_grove: Installation) -> None:
    told = on_grove.asker.create(GRAPH, queued())
    assert 403 == told.code, told.text
    assert f"metadata.annotations[{labels.KAI_QUEUE}]: " in told.text


@pytest.mark.parametrize("annotation", [labels.ENABLE_GROVE, labels.WORKLOAD_PROVIDER])
def test_what_components_will_run_is_not_validated_for_grove(annotation: str, on_grove: Installation) -> None:
    value = "false" if annotation == labels.ENABLE_GROVE else "component"
    told = on_grove.asker.create(GRAPH, queued(**{annotation: value}))
    assert 201 == told.code, told.text
