"""Every role with every backend under every orchestrator, on one node and on several.

Most of the 168 cells are alike, and a reader wants to see in what they differ. So a cell is written as
the lines in which it differs from a simpler one, which has no backend or is a worker; the worker without a
backend is written in full. Cells that are refused have the message.
"""

import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from dynamo_graphs.offline import Expansion, expanded
from dynamo_operator.component.api import FRAMEWORKS, WORKER_TYPES
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.templates import WORKLOADS, units
from golden.conftest import Golden
from golden_yaml import PlainDumper
from kube_runtime.types.meta import Object
from kubelet import command_line

FOLDER = Path(__file__).parent / "matrix"
ROLES = ("worker", "prefill", "decode", "frontend", "planner", "epp", "default")
BACKENDS = ("none", *sorted(FRAMEWORKS))
ORCHESTRATORS = ("deployment", "lws", "grove")
NODES = {"one": 1, "several": 2}
SETTINGS = RenderSettings(
    mpi_secret_name="mpi-keys", planner_cluster_role_name="planner", epp_cluster_role_name="epp"
)


class Cell(NamedTuple):
    role: str
    backend: str
    orchestrator: str
    nodes: str

    @property
    def simpler(self) -> "list[Cell]":
        backend = [self._replace(backend="none")] if self.backend != "none" else []
        return [*backend, *([self._replace(role="worker")] if self.role != "worker" else [])]

    def __str__(self) -> str:
        return f"{self.role}, {self.backend}"


def document(cell: Cell) -> Object:
    """A graph of one service. The model is cut over twice the GPUs of a node."""
    command = ["python3", "-m", f"dynamo.{cell.backend}"] if cell.backend != "none" else ["serve"]
    main = {
        "image": "registry.example.com/dynamo/runtime:1.0",
        "command": command,
        "args": ["--model", "acme/chat 70b", "--tensor-parallel-size", "16"],
    }
    service: dict[str, Any] = {"resources": {"limits": {"gpu": "8"}}, "extraPodSpec": {"mainContainer": main}}
    if cell.role != "default":
        service["componentType"] = cell.role
    if cell.role == "epp":
        service["eppConfig"] = {"configMapRef": {"name": "picker", "key": "c.yaml"}}
    if NODES[cell.nodes] > 1:
        service["multinode"] = {"nodeCount": NODES[cell.nodes]}
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "prod"},
        "spec": {"services": {"S": service}},
    }


def expansion(cell: Cell) -> Expansion:
    facts = Facts(lws_served=cell.orchestrator == "lws", grove_served=cell.orchestrator == "grove")
    return expanded(document(cell), facts, SETTINGS)


def outcome(cell: Cell) -> str:
    """The objects of a cell, or why there are none."""
    found = expansion(cell)
    if found.problems:  # a combination that cannot be has its reason here
        return "".join(f"refused: {each}\n" for each in found.problems)
    return yaml.dump_all(found.objects, Dumper=PlainDumper, sort_keys=False, width=100)


def told(cell: Cell) -> list[str]:
    """The lines with which a cell is written: those of the shortest derivation."""
    text = outcome(cell)
    ways = [[f"### {cell}", *text.splitlines()]]
    for simpler in cell.simpler:
        base = outcome(simpler)
        lines = unified_diff(base.splitlines(), text.splitlines(), lineterm="", n=1)
        but = ", but" if base != text else ""
        ways.append([f"### {cell}: as {simpler}{but}", *map(_without_place, list(lines)[2:])])
    return min(ways, key=len)


def _without_place(line: str) -> str:
    """A line of a difference. Where it stands would change with every line before it."""
    return "@@" if line.startswith("@@ ") else line


WRITTEN = [
    (orchestrator, nodes)
    for orchestrator in ORCHESTRATORS
    for nodes in NODES
    if (orchestrator, nodes) != ("lws", "one")  # the same as a Deployment, see below
]


@pytest.mark.parametrize(("orchestrator", "nodes"), WRITTEN)
def test_every_cell_renders_to_its_golden_lines(orchestrator: str, nodes: str, golden: Golden) -> None:
    cells = (Cell(role, backend, orchestrator, nodes) for role in ROLES for backend in BACKENDS)
    text = "\n".join(line for cell in cells for line in told(cell))
    golden.check(FOLDER / f"{orchestrator}-{nodes}.txt", f"{text}\n")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_one_node_is_the_same_with_and_without_leaderworkerset(role: str, backend: str) -> None:
    cell = Cell(role, backend, "lws", "one")
    assert outcome(cell._replace(orchestrator="deployment")) == outcome(cell)


MONITORS = [
    each["spec"]
    for each in yaml.safe_load_all((FOLDER.parent / "charts/monitoring/objects.yaml").read_text("utf-8"))
    if each and each["kind"] == "PodMonitor"
]
SCRAPED = {"frontend": "http", "planner": "metrics"} | dict.fromkeys(WORKER_TYPES, "system")


def scraped(template: Object) -> Iterator[str]:
    """The port of each PodMonitor of the chart that selects these pods."""
    labels = template["metadata"]["labels"]
    for monitor in MONITORS:
        (rule,), own = monitor["selector"]["matchExpressions"], monitor["selector"]["matchLabels"]
        if own.items() <= labels.items() and labels.get(rule["key"]) in rule["values"]:
            yield from (endpoint["port"] for endpoint in monitor["podMetricsEndpoints"])


@pytest.mark.parametrize(("orchestrator", "nodes"), WRITTEN)
def test_a_monitor_scrapes_the_pods_that_listen_and_no_other(orchestrator: str, nodes: str) -> None:
    """Prometheus has no target where a pod lacks the port, and one that is down where nothing listens."""
    for cell in (Cell(role, backend, orchestrator, nodes) for role in ROLES for backend in BACKENDS):
        workloads = [each for each in expansion(cell).objects if each["kind"] in WORKLOADS]
        for template in (it for each in workloads for unit in units(each).values() for it in unit.values()):
            if isinstance(template, dict):  # not the size of a group
                (main,) = (it for it in template["spec"]["containers"] if it["name"] == "main")
                listens = not re.search(r"ray start --address|sshd -D", " ".join(command_line(main, {})))
                ports = [port["name"] for port in main.get("ports", ()) if port["name"] in SCRAPED.values()]
                wanted = [SCRAPED[cell.role]] if cell.role in SCRAPED else []
                assert wanted == [*scraped(template)], cell
                assert cell.role == "epp" or ports == (wanted if listens else []), cell
