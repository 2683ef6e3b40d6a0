"""Nothing that the schema takes makes validation or rendering fail, however odd it is."""

from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.facts import Facts
from dynamo_operator.kube.contained import contained, content
from dynamo_operator.kube.decode import decode
from dynamo_operator.kube.errors import DecodeError
from dynamo_operator.kube.kind import Object, key_of
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.render.tree import component_tree, graph_tree
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.component import component_problems
from dynamo_operator.validation.graph import graph_problems
from dynamo_operator.validation.schema.check import defaulted, schema_problems
from specs.documents import odd_document

SETTINGS = RenderSettings(planner_cluster_role_name="p", ingress_class_name="nginx")


def rendered(kind: type[Resource], document: Object) -> tuple[Object, ...]:
    """The objects of a document that schema and validation let through, of any other none."""
    full = defaulted(document)
    misfits = schema_problems(full)
    try:
        found = decode(kind, msgspec.json.encode(full))
    except DecodeError:
        assert misfits, "what the schema takes can be read"
        return ()
    if isinstance(found, DynamoGraphDeployment):
        refused = graph_problems(found, Facts(), SETTINGS)
        return () if refused else graph_tree(found, Facts(), SETTINGS)
    assert isinstance(found, DynamoComponentDeployment)
    refused = component_problems(found, Facts(), SETTINGS)
    return () if refused else component_tree(found, Facts(), SETTINGS)


@pytest.mark.parametrize("kind", [DynamoGraphDeployment, DynamoComponentDeployment])
@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_each_is_refused_or_rendered(kind: type[Resource], seed: int) -> None:
    objects = rendered(kind, odd_document(kind, Random(seed)))  # noqa: S311 - no secret is drawn
    keys = [(each["kind"], key_of(each)) for each in objects]
    assert len(keys) == len(set(keys))
    for each in objects:
        msgspec.json.encode(each)
        assert contained(content(each), content(each))
