"""`dynamo_graphs` as users import it: quick, typed, and with few dependencies."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

NOT_WITH_THE_IMPORT = (
    "aiohttp",
    "asyncio",
    "jsonschema_rs",
    "yaml",
    "dynamo_graphs.offline",
    "dynamo_operator.component.plan",
    "dynamo_operator.component.render",
    "dynamo_operator.settings",
    "dynamo_graphs.catalog",
    "dynamo_operator.graph.validate",
    "kube_runtime.client",
)
"""What only a step that needs it may import: `from dynamo_graphs import Graph` should be quick."""
USER = """\
from dynamo_graphs import Cluster, Graph, InvalidObject, Latency, Model, Problem, Request
from dynamo_graphs import PersistentVolumeClaim, Toleration, VolumeMount
from dynamo_operator.component.api import SharedMemory

graph: Graph = Graph("chat", replicas=2, labels={"team": "a"}).frontend(routing="kv")
graph = graph.worker("decode", model="Qwen/Qwen3-8B", gpus=2, backend="vllm", env={"A": "b"})
graph = graph.service("decode", shared_memory=SharedMemory(size="8Gi"), replicas=None)
claims: list[PersistentVolumeClaim] = [{"name": "models", "size": "9Gi", "storage_class": "s"}]
graph = graph.with_spec(pvcs=claims).pvc("kernels").service(
    "decode",
    shared_memory={"size": "8Gi"},
    volume_mounts=[{"name": "models", "mount_point": "/models"}, VolumeMount(name="x", mount_point="/x")],
    cache="kernels",
    env={"A": "b", "HF_TOKEN": {"secret_key_ref": {"name": "hf", "key": "token"}}},
    resources={"limits": {"cpu": "4"}},
    scaling_adapter={"enabled": True},
    liveness_probe={"http_get": {"path": "/live", "port": 8000}, "period_seconds": 5},
    tolerations=[Toleration(key="gpu"), {"key": "a", "operator": "Exists"}],
    node_selector={"a": "b"},
    extra_pod_spec={"mainContainer": {"workingDir": "/x"}, "runtime_class_name": "nvidia"},
)
count: int | None = graph.spec.services["decode"].replicas
problems: tuple[Problem, ...] = graph.problems()
kinds: list[str] = [each["kind"] for each in graph.render()]
again: Graph = Graph.from_yaml(graph.to_yaml())
lora: Model = Model.lora("l", model="l", base="b", uri="hf://a/b")
latency = Latency(first_token_ms=500, next_token_ms=50, input_tokens=2048, output_tokens=256)
request: Request = Request.for_latency("r", model="m", profiler_image="i", latency=latency)
try:
    graph.without("x")
except InvalidObject as error:
    text: str = error.problems[0].path


def lines(cluster: Cluster) -> list[str]:
    ready: Graph = cluster.wait("chat", seconds=60, seen=print)
    graph.apply(cluster, force=True)
    return [line.text for _, line in cluster.logs(ready, "decode", tail=3).lines]
"""
WRONG = """\
from dynamo_graphs import Cluster, Graph

Graph("chat").worker("decode", model="m", gpus="two")
Graph("chat").worker("decode", model="m", replicas="two")
Graph("chat").worker("decode", model="m", replics=2)
Graph("chat").worker("decode", model="m", backend="vlm")
Graph("chat").worker("decode")
Graph("chat").service("decode", volume_mounts=[{"name": "models", "mount_pont": "/models"}])
Graph("chat", pvcs=[{"size": "9Gi"}])
Graph("chat").service("decode", shared_memory={"size": ["8Gi"]})
Graph("chat").specs
Cluster().scale("chat", "decode", "two")
Cluster().graphs().name
"""
"""A mistake on each line but the first two."""


def imported(program: str) -> list[str]:
    code = f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    names: list[str] = json.loads(done.stdout)
    return names


def test_importing_the_library_imports_only_what_declares_graphs() -> None:
    names = imported("from dynamo_graphs import Graph")
    assert [] == [each for each in NOT_WITH_THE_IMPORT if each in names]
    assert "dynamo_graphs.graph" in names
    assert [] == [each for each in imported("import dynamo_graphs") if each.startswith("msgspec")]


@pytest.mark.parametrize(
    "checker",
    [("mypy", "--strict", "--no-incremental", "--config-file="), ("pyright", "--pythonpath", sys.executable)],
    ids=lambda each: each[0],
)
def test_type_checkers_take_a_users_file_and_find_mistakes_in_it(
    checker: tuple[str, ...], tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(USER, encoding="utf-8")
    wrong.write_text(WRONG, encoding="utf-8")
    done = subprocess.run(  # noqa: S603  # the tools of this environment
        [sys.executable, "-m", *checker, right.name, wrong.name],
        capture_output=True,
        check=False,
        text=True,
        cwd=tmp_path,
    )
    found = [line for line in done.stdout.splitlines() if "error" in line and ".py:" in line]
    assert [] == [line for line in found if "right.py" in line]
    lines = {int(line.split("wrong.py:")[1].split(":")[0]) for line in found if "wrong.py" in line}
    assert lines == set(range(3, len(WRONG.splitlines()) + 1)), done.stdout + done.stderr


ROOT = Path(__file__).parents[2]
OURS = ("dynamo-graphs", "dynamo-operator", "kube-runtime")
UV = ROOT / ".make/bin/uv"
NAME = re.compile(r"[\w.-]+")


def needed(name: str) -> Iterator[Distribution]:
    """The third-party packages that a package declares, and those that they declare, without extras."""
    for line in distribution(name).requires or ():
        requirement, _, marker = line.partition(";")
        found = NAME.match(requirement)
        if marker.strip() or found is None:
            continue  # of an extra, or of another version of Python
        if found[0] not in OURS:
            yield distribution(found[0])
        yield from needed(found[0])


MOST_BYTES = 40_000_000
"""Of the library with what it needs for a cluster, without compiled modules."""


def installed(package: str, extras: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """The packages that one of ours brings with these extras, and their sizes."""
    folder = ROOT / "packages" / package
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project.get("optional-dependencies", {})
    yield package, sum(file.stat().st_size for file in folder.glob("src/**/*") if file.is_file())
    for line in (*project["dependencies"], *(line for extra in extras for line in optional[extra])):
        name, _, rest = line.partition("[")
        bare = re.split(r"[<>=]", name)[0]
        if (ROOT / "packages" / bare).is_dir():
            yield from installed(bare, tuple(filter(None, rest.rstrip("]").split(","))))
        else:
            yield from third_party(bare)


def third_party(name: str) -> Iterator[tuple[str, int]]:
    found = distribution(name)
    files = (Path(str(file.locate())) for file in found.files or () if "__pycache__" not in file.parts)
    yield name, sum(file.stat().st_size for file in files if file.is_file())
    for line in found.requires or ():
        if ";" not in line:  # else of an extra, or of another version of Python
            match = NAME.match(line)
            assert match is not None
            yield from third_party(match[0])


def test_the_library_with_its_client_is_small() -> None:
    sizes = dict(installed("dynamo-graphs", ("cluster",)))
    assert {"aiohttp", "jsonschema-rs", "msgspec"} <= sizes.keys()
    assert sum(sizes.values()) < MOST_BYTES, sizes
    assert not {"cyclopts", "kubernetes", "rich"} & sizes.keys()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheels; third-party packages are copied, without network."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in OURS:
        subprocess.run(  # noqa: S603  # our own tool
            [UV, "build", "--quiet", "--offline", "--wheel", f"--package={package}", f"--out-dir={folder}"],
            check=True,
            cwd=ROOT,
        )
    subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True
    )
    (packages,) = (folder / "venv/lib").glob("python3*/site-packages")
    for wheel in folder.glob("*.whl"):
        with ZipFile(wheel) as archive:  # a wheel without data or scripts is installed so
            assert not [each for each in archive.namelist() if ".data/" in each]
            archive.extractall(packages)
    for each in {found.name: found for name in OURS for found in needed(name)}.values():
        for file in each.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(str(file.locate())), target)
    return folder / "venv/bin/python"


def run(python: Path, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own interpreter
        [python, "-I", "-W", "error", "-c", code], capture_output=True, check=False, text=True, cwd=folder
    )


def test_the_library_runs_with_what_its_wheels_declare(python: Path, tmp_path: Path) -> None:
    page = (ROOT / "packages/dynamo-graphs/README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = run(python, code, tmp_path)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_nothing_else_is_in_the_environment(python: Path, tmp_path: Path) -> None:
    for name in ("aiohttp", "dynamoctl", "dynamo_legacy", "kubernetes", "pytest"):
        done = run(python, f"import {name}", tmp_path)
        assert "ModuleNotFoundError" in done.stderr


def test_type_checkers_may_read_the_types(python: Path, tmp_path: Path) -> None:
    code = "import dynamo_graphs as a, kube_runtime as b; print(a.__path__[0], b.__path__[0])"
    for folder in run(python, code, tmp_path).stdout.split():
        assert (Path(folder) / "py.typed").is_file()
