"""Every field of every kind can be given, read and written in Python."""

from typing import get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs import ApiObject, Component, Graph, Model, Request, ScalingAdapter
from dynamo_operator.crds import RESOURCES
from dynamo_operator.models.api import DynamoWorkerMetadata
from kube_runtime.schema import SHAPES, resource_schema, unwrapped
from kube_runtime.types.meta import Object, Resource

KINDS: tuple[type[ApiObject], ...] = (Graph, Component, Request, ScalingAdapter, Model)


def test_each_kind_that_users_write_is_exported() -> None:
    written_by_the_runtime = {DynamoWorkerMetadata}
    assert {*RESOURCES} - written_by_the_runtime == {each.TYPE for each in KINDS}


def leaves(schema: Object, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The paths of all fields that a schema declares, down to plain JSON."""
    found = {path} if path else set[tuple[str, ...]]()
    inner = schema.get("items", schema.get("additionalProperties"))
    if isinstance(inner, dict):
        found |= leaves(inner, (*path, "*"))
    for name, each in schema.get("properties", {}).items():
        found |= leaves(each, (*path, name))
    return found


def covered(type_: object, path: tuple[str, ...]) -> bool:
    """Whether a struct has the field at a path; plain JSON has every field."""
    bare, _ = unwrapped(type_)
    if not path:
        return True
    first, *rest = path
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        fields = {each.encode_name: each.type for each in msgspec.structs.fields(SHAPES.get(bare, bare))}
        return first in fields and covered(fields[first], tuple(rest))
    arguments = get_args(bare)
    if first == "*" and get_origin(bare) in (tuple, dict):
        return covered(arguments[-1] if get_origin(bare) is dict else arguments[0], tuple(rest))
    return get_origin(bare) is dict or bare is msgspec.Raw


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_the_types_cover_every_field_of_the_crd(kind: type[ApiObject]) -> None:
    schema = resource_schema(kind.TYPE)
    paths = {path for path in leaves(schema) if path[0] in ("spec", "status")}
    assert len(paths) > 5
    assert [] == sorted(path for path in paths if not covered(kind.TYPE, path))


def test_a_field_that_a_type_lacks_would_be_noticed() -> None:
    assert not covered(Graph.TYPE, ("spec", "unknown"))
    assert not covered(Graph.TYPE, ("spec", "services", "*", "unknown"))
    assert covered(Graph.TYPE, ("spec", "services", "*", "extraPodSpec", "unknown"))


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
@settings(max_examples=40)
@given(spec=st.dictionaries(TEXT, JSON, max_size=4))
def test_unknown_fields_survive_the_way_through_text(kind: type[ApiObject], spec: Object) -> None:
    named: type[Resource] = kind.TYPE
    document = {
        "apiVersion": named.KIND.api_version,
        "kind": named.KIND.name,
        "metadata": {"name": "x"},
        "spec": spec,
    }
    made = kind.from_dict(document)
    assert document == kind.from_yaml(made.to_yaml()).to_dict()
    assert made == kind.from_yaml(made.to_yaml())
