"""Nothing that the schema takes makes validation or rendering fail, however odd it is."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs.offline import component_tree, graph_tree
from dynamo_graphs.schema import schema_problems
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.validate import component_problems
from dynamo_operator.crds import defaulted
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import with_provider
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.apply.drift import has_no_drift
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Object, Resource, content
from kube_runtime.wire import decode
from specs.documents import odd_document
from specs.invariants import assert_all_hold

SETTINGS = RenderSettings(
    planner_cluster_role_name="p",
    ingress_class_name="nginx",
    mpi_secret_name="keys",
    disruption_budget_max_unavailable="25%",
)


def rendered(kind: type[Resource], document: Object, facts: Facts) -> tuple[Object, ...]:
    """The objects of a document that schema and validation let through, of any other none."""
    full = defaulted(document)
    misfits = schema_problems(full)
    try:
        found = decode(kind, msgspec.json.encode(full))
    except DecodeError:
        assert misfits, "what the schema takes can be read"
        return ()
    if isinstance(found, DynamoGraphDeployment):
        refused = graph_problems(with_provider(found, facts), SETTINGS)
        return () if refused else graph_tree(found, facts, SETTINGS)
    assert isinstance(found, DynamoComponentDeployment)
    refused = component_problems(found, SETTINGS)
    return () if refused else component_tree(found, facts, SETTINGS)


@pytest.mark.parametrize("kind", [DynamoGraphDeployment, DynamoComponentDeployment])
@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 2**32), on_grove=st.booleans())
def test_each_is_refused_or_rendered(kind: type[Resource], seed: int, *, on_grove: bool) -> None:
    document = odd_document(kind, Random(seed))  # noqa: S311 - no secret is drawn
    facts = Facts(lws_served=True, grove_served=on_grove, kai_served=on_grove, istio_served=True)
    objects = rendered(kind, document, facts)
    assert_all_hold(objects)
    has_misfits = bool(schema_problems(defaulted(document)))
    for each in objects:
        msgspec.json.encode(each)
        assert has_misfits or has_no_drift(content(each), content(each))
