"""Kinds and keys: how they are written, and the objects made of them."""

from kube_runtime.types.meta import Key, Kind, key_of

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)


def test_a_kind_is_written_as_kubectl_writes_it() -> None:
    assert ["widgets.example.com", "nodes"] == [str(WIDGET), str(NODE)]
    assert ["example.com/v1", "v1"] == [WIDGET.api_version, NODE.api_version]


def test_the_manifest_of_a_kind_has_its_key() -> None:
    body = WIDGET.manifest({"name": "a", "namespace": "lab"}, spec={"size": 1})
    assert {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "spec": {"size": 1},
    }.items() <= body.items()
    assert Key("lab", "a") == key_of(body)


def test_the_key_of_a_cluster_scoped_object_is_its_name() -> None:
    assert "a" == str(key_of(NODE.manifest({"name": "a"})))
    assert "lab/a" == str(Key("lab", "a"))
