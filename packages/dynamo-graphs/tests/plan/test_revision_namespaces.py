"""Frontends look for workers by a prefix, and must not find those of another graph."""

from hypothesis import assume, given
from hypothesis import strategies as st

from dynamo_operator.features.rollouts.plan import first_revision, namespace_prefix
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import dynamo_namespace, revision_dynamo_namespace
from specs import a_graph, a_service

_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,70}[a-z0-9])?", fullmatch=True)


def graph(name: str) -> DynamoGraphDeployment:
    managed = {"nvidia.com/worker-rollout": "managed"}
    return a_graph({"W": a_service()}, name=name, metadata={"annotations": managed})


@given(_names, st.one_of(_names, st.from_regex(r"-?[a-z0-9]{1,4}", fullmatch=True)))
def test_no_other_graph_begins_like_a_managed_one(name: str, other: str) -> None:
    # The interesting neighbour is one whose name continues where this one's ends.
    for neighbour in (other, f"{name}{other}"):
        assume(neighbour != name)
        prefix = first_revision(graph(name)).namespace_prefix
        assert not dynamo_namespace("prod", neighbour).startswith(prefix)
        assert not revision_dynamo_namespace("prod", neighbour, "0123abcd").startswith(prefix)


@given(_names)
def test_a_managed_graph_finds_all_its_generations(name: str) -> None:
    for finds_plain in (False, True):
        prefix = namespace_prefix(graph(name), finds_plain=finds_plain)
        assert revision_dynamo_namespace("prod", name, "0123abcd").startswith(prefix)
    assert dynamo_namespace("prod", name).startswith(
        namespace_prefix(graph(name), finds_plain=True)
    )
