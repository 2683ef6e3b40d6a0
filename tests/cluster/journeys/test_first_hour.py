"""The first hour with graphs, at terminals of 80 and 160 columns: every screen that a user sees.

The screens are in `screens/`; `REWRITE_GOLDEN=1` writes them again. A screen that follows the cluster is
taken again until it is as expected: when a status arrives is up to the machine.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import service
from cluster.graph.test_failures import FAILURES, TAKEN
from cluster.journeys.terminal import Terminal
from cluster.operator_process import OperatorProcess
from cluster.world import GRAPH, NAMESPACES, World
from kube_runtime.types.kinds import Service, ServiceAccount
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

EXAMPLE = Path(__file__).parents[3] / "examples/v1alpha1/vllm-disaggregated.yaml"
SCREENS = Path(__file__).parent / "screens"
BROKEN = {
    "image": "an image that cannot be pulled",
    "crash": "a container that exits",
    "gpus": "more GPUs than a node has",
    "selector": "a node selector that no node has",
    "pvc": "a PVC that does not exist",
    "account": "a ServiceAccount that does not exist",
    "taken": "a name that another object has",
    "script": "a worker that neither runs a command nor a script",
    "paused": "a graph that is paused",
    "suspended": "a graph that is suspended",
    "both": "services with different causes",
}
INVALID: Object = {
    "apiVersion": GRAPH.api_version,
    "kind": GRAPH.name,
    "metadata": {"name": "invalid"},
    "spec": {"services": {"Frontend": service("frontend", ingress={"enabled": True}, replica=2)}},
}


@dataclass(slots=True)
class Screens:
    """The screens of one width, in their order, with those that are expected."""

    terminal: Terminal
    world: World
    expected: list[str]
    taken: list[str] = field(default_factory=list[str])

    def shows(self, *words: str) -> None:
        """Take the screen of a command that only reads, until it is the expected one."""
        if os.environ.get("REWRITE_GOLDEN") == "1":
            found = [self._screen(words)]
            while len(found) < 3 or len(set(found[-3:])) > 1:  # until it is the same three times
                found.append(self._screen(words))
            self.taken.append(found[-1])
            return
        wanted = self._next()
        self.taken.append(wanted)
        last = ""

        def is_shown() -> bool:
            nonlocal last
            last = self._screen(words)
            return last == wanted

        self.world.until(is_shown, what=lambda: f"expected:\n{wanted}\nfound:\n{last}")

    def does(self, *words: str) -> None:
        """Take the screen of a command that changes something, once."""
        found = self._screen(words)
        if os.environ.get("REWRITE_GOLDEN") != "1":
            assert self._next() == found
        self.taken.append(found)

    def _next(self) -> str:
        assert len(self.taken) < len(self.expected), "there are more screens than expected"
        return self.expected[len(self.taken)]

    def _screen(self, words: tuple[str, ...]) -> str:
        found = self.terminal.run(*words)
        ended = f"(exit code {found.code})\n" if found.code else ""
        return f"$ dynamoctl {' '.join(words)}\n{found.text}\n{ended}"


@pytest.fixture(params=[80, pytest.param(160, marks=pytest.mark.long)])
def screens(
    request: pytest.FixtureRequest, installed_operator: OperatorProcess, kinds: ControlPlane, tmp_path: Path
) -> Iterator[Screens]:
    """A terminal whose kubeconfig has a namespace of its own; its name is the same in each run."""
    assert installed_operator.ended is None
    columns: int = request.param
    namespace = f"lab-{columns:03}"
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copy(kinds.kubeconfig, kubeconfig)
    context = ("config", "set-context", "--current", f"--namespace={namespace}")
    kinds.kubectl(*context, f"--kubeconfig={kubeconfig}")
    world = kinds.world(namespace)
    world.create(NAMESPACES, {"metadata": {"name": namespace, "namespace": ""}})
    world.eventually(ServiceAccount.KIND, "default")
    file = SCREENS / f"{columns}.txt"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    expected = re.split(r"\n(?=\$ dynamoctl )", text)
    terminal = Terminal(columns, tmp_path, {"KUBECONFIG": str(kubeconfig)})
    try:
        found = Screens(terminal, world, expected)
        yield found
        if os.environ.get("REWRITE_GOLDEN") == "1":
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(found.taken), encoding="utf-8")
        else:
            assert len(expected) == len(found.taken)
    finally:
        world.delete(NAMESPACES, namespace)


def write(folder: Path, name: str, body: Object) -> None:
    (folder / name).write_text(json.dumps(body), encoding="utf-8")


def broken(name: str, title: str) -> Object:
    (body,) = (each.body for each in FAILURES if each.title == title)
    metadata = {**body["metadata"], "name": name}
    found = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name, **body, "metadata": metadata}
    return deepcopy(found)


def test_the_first_hour(screens: Screens) -> None:
    folder, world = screens.terminal.folder, screens.world
    example = EXAMPLE.read_text(encoding="utf-8").replace("vllm-disaggregated", "chat")
    (folder / "chat.yaml").write_text(example, encoding="utf-8")

    screens.shows("get")
    screens.shows("why", "chat")
    screens.does("apply", "-f", "chat.yaml")
    world.eventually(GRAPH, "chat", is_ready)
    for command in ("get", "status", "why", "tree"):
        screens.shows(command, *(["chat"] if command != "get" else []))

    broken_in_many_ways(screens)

    screens.does("scale", "chat/Decode", "--replicas", "3")
    world.eventually(GRAPH, "chat", is_ready)
    edited = example.replace("vllm-runtime:0.9.0", "vllm-runtime:0.9.1", 1)
    edited = edited.replace("replicas: 2", "replicas: 3")
    (folder / "chat.yaml").write_text(edited, encoding="utf-8")
    screens.shows("diff", "-f", "chat.yaml")
    screens.does("apply", "-f", "chat.yaml")
    world.eventually(GRAPH, "chat", is_ready)
    screens.shows("rollout", "history", "chat")
    screens.shows("rollout", "undo", "chat", "--dry-run")
    screens.does("rollout", "undo", "chat")
    world.eventually(GRAPH, "chat", is_ready)
    screens.shows("status", "chat")

    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")
    screens.shows("status", "chat")


def broken_in_many_ways(screens: Screens) -> None:
    """Graphs with mistakes: one that is refused, those whose cause `why` names, and the remedy of one."""
    folder, world = screens.terminal.folder, screens.world
    write(folder, "invalid.json", INVALID)
    screens.shows("lint", "invalid.json")
    screens.does("apply", "-f", "invalid.json")
    (folder / "broken").mkdir()
    for name, title in BROKEN.items():
        write(folder, f"broken/{name}.json", broken(name, title))
    world.create(Service.KIND, {**TAKEN, "metadata": {"name": "taken-frontend"}})
    screens.does("apply", "-f", "broken")
    for name in ("gpus", "selector"):  # a scheduler has half a minute before that is the cause
        world.eventually(GRAPH, name, lambda it: condition(it).get("reason") == "insufficient_capacity")
    for name in BROKEN:
        screens.shows("why", name)
    screens.shows("get")
    screens.shows("status", "both")
    screens.shows("tree", "crash")
    words = ("apply", "-f", "broken/crash.json", "--wait")
    interrupted = screens.terminal.interrupted("CrashLoop", *words)
    assert interrupted.is_cursor_shown
    assert 130 == interrupted.code, interrupted.text
    assert "stopped waiting; the objects stay, and the operator continues" in interrupted.text
    healthy = broken("crash", BROKEN["crash"])
    del healthy["spec"]["services"]["Decode"]["extraPodMetadata"]
    write(folder, "broken/crash.json", healthy)
    fixed = screens.terminal.run(*words)
    assert (0, True) == (fixed.code, "crash: ready" in fixed.text), fixed.text
    screens.shows("why", "crash")
    for name in BROKEN:
        world.delete(GRAPH, name)
    for name in BROKEN:
        world.gone(GRAPH, name)
