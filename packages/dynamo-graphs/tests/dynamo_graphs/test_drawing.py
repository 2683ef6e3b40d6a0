"""The drawing of a graph says what is in it, and nothing of it is markup that a user wrote."""

from xml.etree import ElementTree

from dynamo_graphs import Graph
from stated import a_condition, counts

MODEL = "Qwen/Qwen3-8B"
GRAPH = Graph("chat").frontend().planner().prefill(model=MODEL, replicas=2, gpus=4)
GRAPH = GRAPH.decode(model=MODEL, gpus=8, nodes=2)


def texts(graph: Graph) -> list[str]:
    root = ElementTree.fromstring(graph.svg())  # noqa: S314  our own drawing
    return [each.text or "" for each in root.iter() if each.tag.endswith(("text", "title"))]


def with_status(graph: Graph, ready: int) -> Graph:
    document = graph.to_dict("v1alpha1")
    condition = a_condition("Ready", "True" if ready else "False", "some_resources_are_not_ready")
    services = dict.fromkeys(
        document["spec"]["services"], counts(ready, replicas=ready, updatedReplicas=ready)
    )
    return Graph.from_dict({**document, "status": {"conditions": [condition], "services": services}})


def test_services_models_and_gpus_are_drawn() -> None:
    found = texts(GRAPH)
    assert "chat: 4 services, 24 GPUs" in found
    assert {"Frontend", "Planner", "Prefill", "Decode", MODEL, "frontend", "planner"} <= set(found)
    assert "2 replicas · 8 GPUs" in found
    assert "1 replica · 16 GPUs, 2 nodes" in found
    assert GRAPH.svg().count("<path d") == 2, "requests"
    assert GRAPH.svg().count('<path class="p"') == 2, "of the planner"
    assert GRAPH._repr_html_() == GRAPH.svg()


def test_the_state_is_drawn_once_there_is_one() -> None:
    found = texts(with_status(GRAPH, 1))
    assert "chat: 4 services, 24 GPUs, ready" in found
    assert "1/2 ready · 8 GPUs" in found
    late = with_status(GRAPH, 0)
    assert "chat: 4 services, 24 GPUs, not ready (0 of 4 services ready)" in texts(late)
    assert "#c62828" in late.svg()
    assert "#c62828" not in with_status(Graph("g").frontend(), 1).svg()


def test_a_graph_is_shown_in_one_line() -> None:
    assert repr(GRAPH) == "<Graph chat: 4 services, 24 GPUs>"
    assert repr(with_status(GRAPH, 1)) == "<Graph chat: 4 services, 24 GPUs, ready>"
    assert repr(Graph.from_dict({**GRAPH.to_dict("v1alpha1"), "spec": 1})) == "<Graph chat>"


def test_text_of_users_is_escaped_and_cut() -> None:
    document = GRAPH.to_dict("v1alpha1")
    evil = "<script>alert(1)</script>&\x1b\u202e"
    document["spec"]["services"] = {
        evil: {"componentType": evil, "subComponentType": '"><svg onload=x>'},
        "W": {"componentType": "worker", "modelRef": {"name": evil * 5}},
    }
    svg = Graph.from_dict(document).svg()
    assert "<script" not in svg
    assert "onload=x>" not in svg.replace("onload=x&gt;", "")
    assert "\x1b" not in svg
    assert "\u202e" not in svg
    assert all(len(each) < 130 for each in texts(Graph.from_dict(document)))


def test_graphs_without_services_and_arguments_of_any_shape_are_drawn() -> None:
    assert texts(Graph("chat")) == ["chat: 0 services, 0 GPUs"] * 2
    document = GRAPH.to_dict("v1alpha1")
    for args in (None, "--model", [1, "--model"], ["--model"]):
        worker = {"componentType": "worker", "extraPodSpec": {"mainContainer": {"args": args}}}
        document["spec"]["services"] = {"W": worker}
        assert "worker" in texts(Graph.from_dict(document))
