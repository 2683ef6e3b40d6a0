"""A partial graph merged over a generated one, in both versions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.graph import v1beta1
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.graph_override import V1ALPHA1, V1BETA1, Overridden, OverrideError, overridden
from dynamo_operator.versions.conversion import convert
from kube_runtime.schema import resource_schema
from kube_runtime.types.meta import Object

SCHEMAS = {
    V1ALPHA1: resource_schema(DynamoGraphDeployment),
    V1BETA1: resource_schema(v1beta1.DynamoGraphDeployment),
}


def a_graph(version: str, spec: Object, **metadata: Any) -> Object:
    """A graph, or a part of one."""
    graph: Object = {"apiVersion": version, "kind": "DynamoGraphDeployment", "spec": spec}
    return {**graph, "metadata": metadata} if metadata else graph


def a_service(*args: str, **fields: Any) -> Object:
    """A service with these arguments."""
    return {"extraPodSpec": {"mainContainer": {"args": [*args]}}, **fields}


def a_component(name: str, *args: str, **fields: Any) -> Object:
    """A component whose main container has these arguments."""
    container = {"name": "main", "args": [*args], **fields}
    return {"name": name, "podTemplate": {"spec": {"containers": [container]}}}


OLD = a_graph(
    V1ALPHA1,
    {
        "services": {
            "Frontend": a_service("--a", componentType="frontend", replicas=1),
            "Decode": a_service(
                "--b", componentType="worker", replicas=2, envs=[{"name": "A", "value": "1"}]
            ),
        }
    },
    name="chat",
)
NEW = a_graph(
    V1BETA1,
    {
        "components": [
            {"type": "frontend", **a_component("Frontend", "--a")},
            {
                "type": "worker",
                "replicas": 2,
                **a_component("Decode", "--b", env=[{"name": "A", "value": "1"}]),
            },
        ]
    },
    name="chat",
)


def component(result: Overridden, name: str) -> Object:
    """The component of the graph with that name."""
    found: Object = next(each for each in result.graph["spec"]["components"] if each["name"] == name)
    return found


def main_of(result: Overridden, name: str) -> Object:
    """The main container of that component."""
    container: Object = component(result, name)["podTemplate"]["spec"]["containers"][0]
    return container


def test_an_override_in_v1alpha1_appends_arguments_of_workers_and_replaces_those_of_the_frontend() -> None:
    spec = {"services": {"Frontend": a_service("--x"), "Decode": a_service("--y", replicas=5)}}
    services = overridden(OLD, a_graph(V1ALPHA1, spec), SCHEMAS).graph["spec"]["services"]
    assert ["--x"] == services["Frontend"]["extraPodSpec"]["mainContainer"]["args"]
    assert ["--b", "--y"] == services["Decode"]["extraPodSpec"]["mainContainer"]["args"]
    assert (1, 5) == (services["Frontend"]["replicas"], services["Decode"]["replicas"])


def test_lists_without_keys_are_replaced_in_v1alpha1() -> None:
    blueprint = a_graph(V1ALPHA1, {"services": {"Decode": {"extraPodSpec": {"containers": [{"name": "a"}]}}}})
    change = {"envs": [{"name": "B", "value": "2"}], "extraPodSpec": {"containers": [{"name": "b"}]}}
    override = a_graph(V1ALPHA1, {"services": {"Decode": change}})
    assert change == overridden(blueprint, override, SCHEMAS).graph["spec"]["services"]["Decode"]
    envs = overridden(OLD, override, SCHEMAS).graph["spec"]["services"]["Decode"]["envs"]
    assert [{"name": "B", "value": "2"}] == envs


def test_an_override_in_v1beta1_replaces_arguments_and_merges_variables_by_name() -> None:
    change = a_component("Decode", "--y", env=[{"name": "B", "value": "2"}])
    result = overridden(NEW, a_graph(V1BETA1, {"components": [change]}), SCHEMAS)
    container = main_of(result, "Decode")
    assert ["--y"] == container["args"]
    assert [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}] == container["env"]
    assert 2 == component(result, "Decode")["replicas"]
    assert ["--a"] == main_of(result, "Frontend")["args"]


def test_a_patch_of_a_container_appends_its_arguments() -> None:
    change = a_component("Decode", "--y", **{"$patch": {"args": "append"}})
    container = main_of(overridden(NEW, a_graph(V1BETA1, {"components": [change]}), SCHEMAS), "Decode")
    assert {"name": "main", "args": ["--b", "--y"], "env": [{"name": "A", "value": "1"}]} == container
    change = a_component("Decode", "--y", **{"$patch": "delete"})
    with pytest.raises(
        OverrideError, match=r'^override \$patch of a container must be \{"args": "append"\}$'
    ):
        overridden(NEW, a_graph(V1BETA1, {"components": [change]}), SCHEMAS)


def test_a_graph_in_another_version_comes_back_in_its_own() -> None:
    override = a_graph(V1BETA1, {"components": [{"name": "Decode", "replicas": 7}]})
    result = overridden(OLD, override, SCHEMAS)
    services = result.graph["spec"]["services"]
    assert (V1ALPHA1, 7, 1) == (
        *(result.graph["apiVersion"], services["Decode"]["replicas"], services["Frontend"]["replicas"]),
    )
    override = a_graph(V1ALPHA1, {"services": {"Decode": a_service("--y")}})
    assert ["--b", "--y"] == main_of(overridden(NEW, override, SCHEMAS), "Decode")["args"]


def test_what_has_no_effect_is_a_warning() -> None:
    annotations = {"nvidia.com/dgd-spec": "{}", "team": "search"}
    metadata = {
        "name": "mine",
        "namespace": "n",
        "uid": "u",
        "labels": {"a": "b"},
        "annotations": annotations,
    }
    override = a_graph(V1BETA1, {"components": [{"name": "Other", "replicas": 1}]}, **metadata)
    result = overridden(NEW, override, SCHEMAS)
    assert [
        "metadata: ignored identity/runtime fields: namespace, uid",
        "metadata.annotations: ignored reserved operator keys: nvidia.com/dgd-spec",
        "spec.components[name=Other]: ignored because the generated blueprint has no such component",
    ] == [f"{warning.path}: {warning.message}" for warning in result.warnings]
    expected = {"name": "chat", "labels": {"a": "b"}, "annotations": {"team": "search"}}
    assert {**NEW, "metadata": expected} == result.graph
    override = a_graph(V1ALPHA1, {"services": {"Other": {"replicas": 1}}})
    (warning,) = overridden(OLD, override, SCHEMAS).warnings
    text = "ignored because the generated blueprint has no such service"
    assert ("spec.services.Other", text) == (warning.path, warning.message)


NO_NULL = "must not be null; field deletion is not supported"


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod"},
            'override must be nvidia.com/v1alpha1 or nvidia.com/v1beta1, got apiVersion "v1" kind "Pod"',
        ),
        ({}, 'override must be nvidia.com/v1alpha1 or nvidia.com/v1beta1, got apiVersion "" kind ""'),
        ({**a_graph(V1BETA1, {}), "status": {}}, "override status is not supported"),
        ({**a_graph(V1BETA1, {}), "spec": None}, f"override spec {NO_NULL}"),
        ({**a_graph(V1BETA1, {}), "metadata": None}, f"override metadata {NO_NULL}"),
        (a_graph(V1BETA1, {}, labels=None), f"override metadata.labels {NO_NULL}"),
        (
            a_graph(V1ALPHA1, {"services": {"Decode": {"replicas": None}}}),
            f"override spec.services.Decode.replicas {NO_NULL}",
        ),
        (
            a_graph(V1BETA1, {"components": [{"name": "Decode", "replicas": None}]}),
            f"override spec.components[0].replicas {NO_NULL}",
        ),
        (a_graph(V1BETA1, {"services": {}}), "override spec.services is not a field of this version"),
        (a_graph(V1BETA1, {"components": [{}]}), "override spec.components[0] must be an object with name"),
    ],
)
def test_an_override_that_cannot_be_merged_is_an_error(override: Object, text: str) -> None:
    blueprint = OLD if override.get("apiVersion") == V1ALPHA1 else NEW
    with pytest.raises(OverrideError) as error:
        overridden(blueprint, override, SCHEMAS)
    assert text == str(error.value)


def test_a_blueprint_must_be_a_graph() -> None:
    with pytest.raises(OverrideError, match=r"^blueprint must be nvidia.com/v1alpha1 or"):
        overridden({"kind": "ConfigMap"}, OLD, SCHEMAS)
    broken = a_graph(V1ALPHA1, {"services": []})
    with pytest.raises(OverrideError, match=r"^blueprint cannot be converted: spec.services: "):
        overridden(broken, NEW, SCHEMAS)


NAMES = st.sampled_from(["Frontend", "Decode", "Other"])


def _name(change: Any) -> str:
    name: str = change["name"]
    return name


CHANGES = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "replicas": st.integers(0, 9),
            "podTemplate": st.fixed_dictionaries(
                {"spec": st.fixed_dictionaries({"nodeSelector": st.dictionaries(NAMES, st.just("x"))})}
            ),
        },
    ),
    unique_by=_name,
)


@given(CHANGES)
def test_an_override_adds_no_component_and_keeps_what_it_does_not_name(changes: list[Object]) -> None:
    override = a_graph(V1BETA1, {"components": changes})
    result = overridden(NEW, override, SCHEMAS)
    before, after = NEW["spec"]["components"], result.graph["spec"]["components"]
    assert [each["name"] for each in before] == [each["name"] for each in after]
    by_name = {change["name"]: change for change in changes}
    for old, new in zip(before, after, strict=True):
        change = by_name.get(old["name"], {})
        assert change.get("replicas", old.get("replicas")) == new.get("replicas")
        assert old["podTemplate"]["spec"]["containers"] == new["podTemplate"]["spec"]["containers"]
    assert {"Other"} & by_name.keys() == {"Other" for _ in result.warnings}
    assert result.graph == overridden(result.graph, override, SCHEMAS).graph


@given(CHANGES)
def test_the_version_of_the_blueprint_makes_no_difference(changes: list[Object]) -> None:
    override = a_graph(V1BETA1, {"components": changes})
    there = overridden(convert(NEW, V1ALPHA1), override, SCHEMAS).graph
    here = overridden(NEW, override, SCHEMAS).graph
    assert convert(here, V1ALPHA1)["spec"] == there["spec"]
