"""`dynamoctl diff`, `apply` and `why --all` on a real cluster."""

import copy
import json
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person
from cluster.world import GRAPH, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def file_of(folder: Path, *objects: Object) -> str:
    path = folder / "graph.yaml"
    heads = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name}
    path.write_text("---\n".join(json.dumps(heads | each) + "\n" for each in objects))
    return str(path)


def test_apply_waits_and_diff_shows_what_restarts(world: World, admin: Person, tmp_path: Path) -> None:
    body = graph(Frontend=service("frontend"), Decode=worker("decode"))
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "beside"},
        "data": {"a": "1"},
    }
    file = file_of(tmp_path, config, body)
    code, found = admin.json("diff", "-f", file)
    assert (0, ["create", "create"]) == (code, [each["verb"] for each in found])
    assert {("Decode", "create"), ("Frontend", "create")} == {
        (each["service"], each["verb"]) for each in found[1]["effects"]
    }
    code, text, _ = admin.run("apply", "-f", file, "--wait", "--timeout", "180s")
    start = f"ConfigMap {admin.namespace}/beside created\n{GRAPH.name} {admin.namespace}/chat created\n"
    assert (0, start) == (code, text[: len(start)])
    assert is_ready(world.get(GRAPH, "chat") or {})
    code, text, _ = admin.run("apply", file)
    assert (0, 2) == (code, text.count(" unchanged\n"))
    assert 0 == admin.run("diff", file, "--exit-code")[0]
    edited = copy.deepcopy(body)
    edited["spec"]["services"]["Decode"]["envs"] = [{"name": "A", "value": "1"}]
    edited["spec"]["services"]["Frontend"]["replicas"] = 2
    file = file_of(tmp_path, config, edited)
    code, found = admin.json("diff", file)
    assert [("Decode", "restart"), ("Frontend", "scale")] == [
        (each["service"], each["verb"]) for each in found[1]["effects"]
    ]
    code, text, said = admin.run("diff", file, "--exit-code")
    assert (1, True) == (code, "+  replicas: 2" in text.replace("      ", "  "))
    assert "0 to create, 1 to change\n" == said.splitlines(keepends=True)[-1]
    assert "envs" not in (world.get(GRAPH, "chat") or {})["spec"]["services"]["Decode"]


def test_fields_of_another_manager_are_a_conflict(world: World, admin: Person, tmp_path: Path) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    body = graph(Frontend=service("frontend") | {"replicas": 3})
    code, _, said = admin.run("apply", file_of(tmp_path, body))
    assert (1, True) == (code, "--force-conflicts takes these fields over" in said)
    assert 0 == admin.run("apply", file_of(tmp_path, body), "--force-conflicts")[0]


def test_a_graph_that_does_not_become_ready_in_time(admin: Person, tmp_path: Path) -> None:
    stuck = worker("decode", extraPodMetadata={"annotations": {"fake-kubelet": "no-image"}})
    file = file_of(tmp_path, graph(Decode=stuck))
    code, text, said = admin.run("apply", file, "--wait", "--timeout", "6s")
    assert (1, True) == (code, "error: not ready within 6 s" in said)
    assert "→ Correct the image's name or tag." in text
    code, text, said = admin.run("why", "--all")
    assert (1, True, "1 not ready\n") == (code, "image_pull_failed" in text, said)
    code, found = admin.json("why", "--all")
    assert (1, ["chat"]) == (code, [each["name"] for each in found])
