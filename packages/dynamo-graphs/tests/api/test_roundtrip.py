"""What a struct holds survives the way to the wire and back."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from dynamo_operator.crds import RESOURCES
from dynamo_operator.requests.api import ProfilingConfig
from kube_runtime.types.meta import Metadata, Resource

JSON: SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
SCALARS: dict[Any, SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    bool: st.booleans(),
    int: st.integers(-(2**31), 2**31),
    Any: JSON,
    NoneType: st.none(),
}


def values(type_: Any) -> SearchStrategy[Any]:
    """Values of a field's type."""
    arguments = get_args(type_)
    by_origin: dict[Any, Callable[[], SearchStrategy[Any]]] = {
        Annotated: lambda: values(arguments[0]),
        Literal: lambda: st.sampled_from(arguments),
        Union: lambda: st.one_of([values(each) for each in arguments]),
        UnionType: lambda: st.one_of([values(each) for each in arguments]),
        tuple: lambda: st.lists(values(arguments[0]), max_size=2).map(tuple),
        dict: lambda: st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=2),
    }
    if (origin := get_origin(type_)) in by_origin:
        return by_origin[origin]()
    return SCALARS[type_] if type_ in SCALARS else instances(type_)


def instances(struct: type[msgspec.Struct]) -> SearchStrategy[Any]:
    """Instances of a struct. Optional fields are left out at random, as users do."""
    fields = msgspec.structs.fields(struct)
    needed = {info.name: values(info.type) for info in fields if info.required}
    optional = {info.name: values(info.type) for info in fields if not info.required}
    if struct is Metadata:
        optional = {"name": st.text(max_size=5), "labels": st.dictionaries(st.text(), st.text())}
    return st.fixed_dictionaries(needed, optional=optional).map(lambda given: struct(**given))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.KIND.name)
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_decoding_what_was_encoded_gives_the_same(
    resource: type[Resource], data: st.DataObject
) -> None:
    value = data.draw(instances(resource))
    assert value == msgspec.json.decode(msgspec.json.encode(value), type=resource)


def test_a_field_that_the_struct_does_not_know_is_no_error() -> None:
    for resource in RESOURCES:
        assert resource() == msgspec.json.decode(b'{"kind":"X","later":{"a":1}}', type=resource)


def test_abbreviations_keep_their_capitals_on_the_wire() -> None:
    config = ProfilingConfig(profiler_image="i", output_pvc="claim")
    assert {"profilerImage": "i", "outputPVC": "claim"} == msgspec.to_builtins(config)


def test_user_overrides_keep_what_we_do_not_know() -> None:
    pod = {"mainContainer": {"image": "i", "fieldOfTomorrow": {"deep": [1, None]}}}
    for resource in RESOURCES[:2]:
        component = {"extraPodSpec": pod}
        is_graph = resource is RESOURCES[0]
        spec = {"services": {"A": component}} if is_graph else component
        value = msgspec.convert({"spec": spec}, resource)
        assert {"spec": spec} == msgspec.to_builtins(value)
