"""The page about adding a backend is right: its code runs, and nothing is missing from its lists."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.plan import Backend, ComponentPlan
from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import BACKENDS, component_plan
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import IMAGE, a_component

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "extend-a-backend.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def quill() -> Backend:
    """The module that the page writes."""
    (code,) = blocks("python")
    module = ModuleType("quill")
    exec(compile(code, "quill.py", "exec"), module.__dict__)  # noqa: S102  # our own page
    backend = module.BACKEND
    assert isinstance(backend, Backend)
    return backend


def a_worker(**fields: Any) -> DynamoComponentDeployment:
    """A worker of no framework that the operator knows, with a cache."""
    cache = {"name": "kernels", "mountPoint": "/kernels", "useAsCompilationCache": True}
    main = {"image": IMAGE, "command": ["python3", "-m", "dynamo.quill"], "args": ["--model", "m"]}
    pod = {"mainContainer": main}
    return a_component(**{"componentType": "worker", "volumeMounts": [cache], "extraPodSpec": pod, **fields})


def planned(quill: Backend, component: DynamoComponentDeployment) -> ComponentPlan:
    """The component's plan, with the backend from a table that knows the new one."""
    table = {**BACKENDS, "quill": quill}
    return replace(component_plan(component, Facts(), RenderSettings()), backend=table["quill"])


def environment(container: Object) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def test_a_component_on_one_node_learns_its_cache_and_nothing_else(quill: Backend) -> None:
    component = a_worker()
    (main,) = pod_spec(planned(quill, component), None)["containers"]
    plain = component_plan(component, Facts(), RenderSettings())
    (other,) = pod_spec(plain, None)["containers"]
    assert {"QUILL_CACHE": "/kernels"} | environment(other) == environment(main)
    assert {**other, "env": 0} == {**main, "env": 0}


def test_the_users_variable_wins(quill: Backend) -> None:
    component = a_worker(envs=[{"name": "QUILL_CACHE", "value": "/mine"}])
    (main,) = pod_spec(planned(quill, component), None)["containers"]
    assert "/mine" == environment(main)["QUILL_CACHE"]


def test_the_nodes_of_a_group_are_told_where_they_meet(quill: Backend) -> None:
    plan = planned(quill, a_worker(multinode={"nodeCount": 2}))
    _, group = plan.orchestrator.workloads(plan)
    leader, worker = mains(group)
    (said,) = blocks("text")
    assert said.replace("acme/chat-70b", "m").split() == leader["args"]
    assert ["sh", "-c"] == worker["command"]
    assert worker["args"][0].endswith(
        "--meet-at $LWS_LEADER_ADDRESS:7000 --nodes 2 --rank $(LWS_WORKER_INDEX)"
    )
    assert "readinessProbe" in leader
    assert "readinessProbe" not in worker


def mains(group: Object) -> list[Object]:
    """The main containers of leader and workers."""
    template = group["spec"]["leaderWorkerTemplate"]
    pods = (template[name]["spec"] for name in ("leaderTemplate", "workerTemplate"))
    return [pod["containers"][-1] for pod in pods]


@pytest.mark.parametrize("declared", ["  backendFramework: quill\n", ""], ids=["declared", "in the command"])
def test_what_the_page_changes_is_all_that_is_needed(tmp_path: Path, declared: str) -> None:
    where = as_the_page_says(tmp_path)
    (document,) = blocks("yaml")
    answer = rendered(where, document.replace("  backendFramework: quill\n", declared))
    (group,) = (each for each in answer if each["kind"] == "LeaderWorkerSet")
    leader, _ = mains(group)
    (said,) = blocks("text")
    assert said.split() == leader["args"]
    assert "/kernels" == environment(leader)["QUILL_CACHE"]


def as_the_page_says(folder: Path) -> Path:
    """A copy of the package with the page's module in it and the page's lines changed."""
    source = Path("packages", "dynamo-operator", "src")
    package = source / "dynamo_operator"
    shutil.copytree(ROOT / package, folder / package)
    (code,) = blocks("python")
    (folder / package / "component" / "backends" / "quill.py").write_text(code, encoding="utf-8")
    (changes,) = blocks("diff")
    for name, change in re.findall(r"^--- (\S+)\n((?:[-+].*\n)+?)(?=--- |\Z)", changes, re.MULTILINE):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        for old, new in re.findall(r"^-(.*\n)((?:\+.*\n)+)", change, re.MULTILINE):
            assert 1 == text.count(old), f"{name} has no longer the line: {old}"
            text = text.replace(old, re.sub(r"^\+", "", new, flags=re.MULTILINE))
        path.write_text(text, encoding="utf-8")
    return folder / source


def rendered(source: Path, document: str) -> list[Object]:
    """What `dynamoctl render` of that source makes of the document."""
    code = (
        f"import sys, dynamo_operator as found; assert found.__file__.startswith({str(source)!r}); "
        "from dynamoctl.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "render", "--orchestrator", "lws", "-f", "-"]
    answer = subprocess.run(  # noqa: S603  # our own program
        command,
        input=document,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (0, "") == (answer.returncode, answer.stderr)
    return list(yaml.safe_load_all(answer.stdout))
