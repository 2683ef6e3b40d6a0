"""Kinds that are stored in v1beta1: what the operator reads of them, and what it writes."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component import v1beta1 as component
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph import v1beta1 as graph
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.stored_versions import TwoVersions
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object, Resource, from_json, status_of
from kube_runtime.wire import decode
from specs.stored import stored_object

NEW = "nvidia.com/v1beta1"
METADATA: Object = {
    "name": "chat",
    "namespace": "default",
    "uid": "1",
    "generation": 1,
    "resourceVersion": "5",
}
GRAPH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": METADATA,
    "spec": {
        "pvcs": [{"name": "weights", "create": False}],
        "services": {
            "Frontend": {"componentType": "frontend", "replicas": 1},
            "Decode": {
                "componentType": "worker",
                "subComponentType": "decode",
                "envFromSecret": "token",
                "resources": {"limits": {"gpu": "2", "memory": "1024Mi"}},
                "extraPodSpec": {"mainContainer": {"image": "vllm:1", "env": [{"name": "A", "value": "1"}]}},
            },
        },
    },
    "status": {
        "state": "pending",
        "services": {
            "Decode": {
                "componentKind": "Deployment",
                "componentName": "chat-decode",
                "replicas": 1,
                "updatedReplicas": 1,
            }
        },
    },
}


def stored_graph(**changes: Object) -> bytes:
    """The graph as the API server stores it."""
    return msgspec.json.encode({**convert(GRAPH, NEW), **changes})


def of(type_: type[Resource]) -> TwoVersions:
    return TwoVersions(type_.KIND)


def test_a_graph_that_was_written_in_v1alpha1_is_read_as_it_was_written() -> None:
    expected = decode(DynamoGraphDeployment, msgspec.json.encode(GRAPH))
    graph = decode(DynamoGraphDeployment, stored_graph(), translation=of(DynamoGraphDeployment))
    by_name = {name: graph.spec.services[name] for name in expected.spec.services}
    assert expected.spec.services == by_name
    assert expected.spec.pvcs == graph.spec.pvcs
    assert expected.status.state == graph.status.state
    assert expected.status.services["Decode"].component_name == "chat-decode"


def test_a_new_status_is_read_beside_a_spec_that_is_known_and_a_new_spec_is_read() -> None:
    translation = of(DynamoGraphDeployment)
    decode(DynamoGraphDeployment, stored_graph(), translation=translation)
    ready = decode(
        DynamoGraphDeployment, stored_graph(status={"state": "successful"}), translation=translation
    )
    assert ready.status.state == "successful"
    assert 2 == len(ready.spec.services)
    spec = {"components": [{"name": "Frontend", "type": "frontend"}]}
    metadata = {**METADATA, "generation": 2}
    edited = decode(
        DynamoGraphDeployment, stored_graph(spec=spec, metadata=metadata), translation=translation
    )
    assert ["Frontend"] == list(edited.spec.services)


def test_an_edit_of_what_only_v1alpha1_has_is_read_without_a_new_generation() -> None:
    translation = of(DynamoGraphDeployment)
    decode(DynamoGraphDeployment, stored_graph(), translation=translation)
    graph = decode(DynamoGraphDeployment, stored_graph(metadata=METADATA), translation=translation)
    assert () == graph.spec.pvcs


def test_a_status_of_an_adapter_without_a_component_has_the_number_that_v1beta1_requires() -> None:
    kind, translation = DynamoGraphDeploymentScalingAdapter.KIND, of(DynamoGraphDeploymentScalingAdapter)
    for status, expected in (({"desiredReplicas": 2}, 0), ({"desiredReplicas": 2, "replicas": 3}, 3)):
        written = translation.written(kind.manifest(METADATA, status=status))["status"]
        assert (2, expected) == (written["desiredReplicas"], written["replicas"])


def test_a_component_is_written_in_v1beta1_and_is_read_as_it_was_written() -> None:
    translation = of(DynamoComponentDeployment)
    service = GRAPH["spec"]["services"]["Decode"]
    body = DynamoComponentDeployment.KIND.manifest(METADATA, spec={"serviceName": "Decode", **service})
    written = translation.written(body)
    assert NEW == written["apiVersion"]
    assert written["spec"]["podTemplate"]["spec"]["containers"][0]["image"] == "vllm:1"
    text = msgspec.json.encode(written)
    assert (
        decode(DynamoComponentDeployment, text, translation=translation).spec
        == decode(DynamoComponentDeployment, msgspec.json.encode(body)).spec
    )


def test_equal_specs_of_two_objects_are_read_by_the_name_of_each() -> None:
    """A component without a name has that of its object, which it keeps when it is copied to another one."""
    translation = of(DynamoComponentDeployment)
    written = translation.written(DynamoComponentDeployment.KIND.manifest(METADATA, spec={"replicas": 1}))
    names = []
    for name in ("chat", "copy"):
        text = msgspec.json.encode({**written, "metadata": {**written["metadata"], "name": name}})
        names.append(decode(DynamoComponentDeployment, text, translation=translation).spec.service_name)
    assert [None, "chat"] == names


def test_a_patch_of_an_adapter_has_the_names_of_v1beta1() -> None:
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"dgdRef": {"name": "chat", "serviceName": "Decode"}},
    }
    expected = {"name": "chat", "componentName": "Decode"}
    changed = of(DynamoGraphDeploymentScalingAdapter).patch(patch)
    assert {"metadata": {"labels": {"a": "b"}}, "spec": {"dgdRef": expected}} == changed


def test_the_replicas_of_a_service_are_those_of_the_component_of_that_name() -> None:
    translation = of(DynamoGraphDeployment)
    graph = decode(DynamoGraphDeployment, stored_graph(), translation=translation)
    names = [component["name"] for component in convert(GRAPH, NEW)["spec"]["components"]]
    at = names.index("Decode")
    pointer, tests = translation.pointer(graph, ("spec", "services", "Decode", "replicas"))
    assert f"/spec/components/{at}/replicas" == pointer
    assert [{"op": "test", "path": f"/spec/components/{at}/name", "value": "Decode"}] == tests


OF_BOTH = (
    (DynamoGraphDeployment, graph.DynamoGraphDeployment),
    (DynamoComponentDeployment, component.DynamoComponentDeployment),
)
NOT_OURS = ("checkpoints", "placement")
"""Parts of a status that are kept as they are."""


@pytest.mark.parametrize(("type_", "later"), OF_BOTH)
@given(st.integers(min_value=0).map(Random))
def test_a_status_is_read_and_written_as_conversion_does(
    type_: type[Resource], later: type[Resource], dice: Random
) -> None:
    body = stored_object(later, dice)
    status = {name: value for name, value in body.get("status", {}).items() if name not in NOT_OURS}
    for replicas in (
        *status.get("components", {}).values(),
        *([status["component"]] if "component" in status else []),
    ):
        replicas["componentNames"] = ["a", "b"]
    body = {**body, "metadata": {**METADATA}, "status": status}
    raw = msgspec.json.encode(body).replace(b'""', b'"z"')  # which conversion drops
    body, translation = from_json(raw, Object), of(type_)
    expected = decode(type_, msgspec.json.encode(convert(body, type_.KIND.api_version)))
    for _ in range(2):  # the second time as the echo of a watch
        assert status_of(expected) == status_of(decode(type_, raw, translation=translation))
    part = type_.KIND.manifest(
        {"name": "x"}, status=from_json(msgspec.json.encode(status_of(expected)), Object)
    )
    assert convert(part, NEW).get("status", {}) == translation.written(part)["status"]


def test_an_object_says_itself_in_which_version_it_is() -> None:
    """A watch may bring the former version for a while."""
    translation = of(DynamoGraphDeployment)
    expected = decode(DynamoGraphDeployment, msgspec.json.encode(GRAPH))
    assert expected == decode(DynamoGraphDeployment, msgspec.json.encode(GRAPH), translation=translation)
    translation.is_later = False
    graph = decode(DynamoGraphDeployment, stored_graph(), translation=translation)
    assert expected.spec.services == {name: graph.spec.services[name] for name in expected.spec.services}


def test_what_is_stored_in_v1alpha1_again_is_written_as_it_is() -> None:
    translation = TwoVersions(DynamoGraphDeployment.KIND, is_later=False)
    graph = decode(DynamoGraphDeployment, msgspec.json.encode(GRAPH))
    assert DynamoGraphDeployment.KIND == translation.stored
    assert GRAPH == translation.written(GRAPH)
    assert {"spec": {"a": 1}} == translation.patch({"spec": {"a": 1}})
    path = ("spec", "services", "Decode", "replicas")
    assert ("/spec/services/Decode/replicas", []) == translation.pointer(graph, path)


def test_pods_do_not_depend_on_which_version_is_stored() -> None:
    """In v1alpha1, each mount is that of a PVC; an annotation has what the graph said in v1beta1."""
    main = {
        "name": "main",
        "image": "vllm:1",
        "volumeMounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108
            {"name": "config", "mountPath": "/etc/config", "readOnly": True, "subPath": "a"},
        ],
    }
    volumes = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, {"name": "config", "configMap": {}}]
    template = {"spec": {"volumes": volumes, "containers": [main]}}
    written = {
        "apiVersion": NEW,
        "kind": "DynamoGraphDeployment",
        "metadata": METADATA,
        "spec": {"components": [{"name": "W", "type": "worker", "podTemplate": template}]},
    }
    earlier = convert(written, "nvidia.com/v1alpha1")
    specs = [
        msgspec.json.decode(of(DynamoGraphDeployment).read(msgspec.json.encode(body)))["spec"]
        for body in (written, earlier)
    ]
    assert specs[0] == specs[1]
    assert main["volumeMounts"] == specs[1]["services"]["W"]["extraPodSpec"]["mainContainer"]["volumeMounts"]
    untouched = msgspec.json.encode(GRAPH)
    assert untouched is of(DynamoGraphDeployment).read(untouched)


@given(st.integers(min_value=0).map(Random))
def test_a_component_comes_back_from_its_write_as_any_other_is_read(dice: Random) -> None:
    body = stored_object(DynamoComponentDeployment, dice)
    writer = of(DynamoComponentDeployment)
    answer = msgspec.json.encode(writer.written(body), order="deterministic")
    expected = of(DynamoComponentDeployment).read(answer)
    assert from_json(expected, Object) == from_json(writer.read(answer), Object)


def test_the_answer_to_a_write_of_a_component_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = of(DynamoComponentDeployment)
    service = GRAPH["spec"]["services"]["Decode"]
    body = {**GRAPH, "kind": "DynamoComponentDeployment", "spec": service, "status": {}}
    answer = msgspec.json.encode(writer.written(body), order="deterministic")
    monkeypatch.delattr("dynamo_operator.process.stored_versions.seen_spec")
    assert service == from_json(writer.read(answer), Object)["spec"]
    with pytest.raises(NameError):
        of(DynamoComponentDeployment).read(answer)
