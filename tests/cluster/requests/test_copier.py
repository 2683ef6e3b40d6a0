"""The copier as a pod runs it, the operator's own and the shell script, with a real API server."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cluster.conftest import ControlPlane
from cluster.requests.playing import BY_HAND, REQUEST, a_request
from cluster.world import CONFIG_MAP, PATIENCE_SECONDS, PODS, World
from devcluster.programs import find
from devcluster.progress import Silent
from dynamo_operator.requests.render import script
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

Run: TypeAlias = Callable[..., "subprocess.Popen[str]"]

HOSTILE = "a: 1\n\tkey: |\n  $(touch stolen) `id` 'x' \"y\" EOF\n ---\n ü"


@pytest.fixture
def owner(world: World) -> Object:
    """A request that no operator reconciles."""
    return world.create(REQUEST, a_request())


SHELL = ("/bin/sh", "-c", script(), "output-copier")
OWN = (sys.executable, "-c", "from dynamo_operator.main import main; main()", "copy-output")


@pytest.fixture(params=[SHELL, OWN], ids=["shell", "own"])
def run(
    kinds: ControlPlane, world: World, owner: Object, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Run]:
    """Starts the script over a folder, which is made; `fresh` is its last argument."""
    started: list[subprocess.Popen[str]] = []
    container = {"name": "profiler", "image": "x:1", "resources": BY_HAND}
    world.create(PODS, {"metadata": {"name": "pod"}, "spec": {"containers": [container]}})
    kubectl = find(Silent())["kubectl"]
    folder = tmp_path / "data"
    folder.mkdir()

    def start(*fresh: str, **variables: str) -> "subprocess.Popen[str]":
        metadata = (
            '{"metadata":{"labels":{"dgdr.nvidia.com/name":"true"},"ownerReferences":[{"apiVersion":'
            f'"{REQUEST.api_version}","kind":"{REQUEST.name}","name":"chat","uid":"'
            f'{owner["metadata"]["uid"]}"}}]}}}}'
        )
        values = (world.namespace, "dgdr-output-chat", metadata, str(folder), "profiler", *fresh)
        copier = subprocess.Popen(  # noqa: S603 - our own script
            [*request.param, *values],
            env={
                "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
                "HOSTNAME": "pod",
                "KUBECONFIG": str(kinds.kubeconfig),
                "COPIER_PAUSE_SECONDS": "0.2",
                "COPIER_TRIES": "5",
                "COPIER_TERMINATION_LOG": str(tmp_path / "termination-log"),
                "TMPDIR": str(tmp_path),
                **variables,
            },
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        started.append(copier)
        return copier

    yield start
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()


def ended(copier: "subprocess.Popen[str]") -> tuple[int, str]:
    _, said = copier.communicate(timeout=PATIENCE_SECONDS)
    return copier.returncode, said


def has(world: World, data: Object) -> bool:
    found = world.get(CONFIG_MAP, "dgdr-output-chat")
    return found is not None and data == found["data"]


def ends(world: World, code: int) -> None:
    state = {"terminated": {"exitCode": code}}
    status: dict[str, Any] = {"name": "profiler", "state": state, "ready": False, "image": "x"}
    body = {"containerStatuses": [{**status, "imageID": "", "restartCount": 0}]}
    world.patch(PODS, "pod", {"status": body}, "status")


def test_results_arrive_byte_for_byte_with_labels_and_an_owner(
    world: World, run: Run, tmp_path: Path, owner: Object
) -> None:
    for name in ("config_with_planner.yaml", "mocker_config_with_planner.yaml"):
        (tmp_path / "data" / name).write_text(HOSTILE, encoding="utf-8")
    ends(world, 0)
    code, said = ended(run())
    assert 0 == code, said
    found = world.read(CONFIG_MAP, "dgdr-output-chat")
    assert {"config_with_planner.yaml": HOSTILE, "mocker_config_with_planner.yaml": HOSTILE} == found["data"]
    assert {"dgdr.nvidia.com/name": "true"} == found["metadata"]["labels"]
    (reference,) = found["metadata"]["ownerReferences"]
    assert owner["metadata"]["uid"] == reference["uid"]
    assert not (tmp_path / "stolen").exists()
    digest = hashlib.sha256(HOSTILE.encode()).hexdigest()
    reported = (tmp_path / "termination-log").read_text(encoding="utf-8")
    assert [
        f"{digest}  config_with_planner.yaml",
        f"{digest}  mocker_config_with_planner.yaml",
    ] == reported.splitlines()


def test_the_status_arrives_while_the_profiler_runs_and_stays_beside_the_results(
    world: World, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    copier = run()
    for phase in ("Initializing", "SweepingDecode"):
        (folder / "next").write_text(f"phase: {phase}\n", encoding="utf-8")
        (folder / "next").rename(folder / "profiler_status.yaml")
        told = {"profiler_status.yaml": f"phase: {phase}\n"}
        world.until(partial(has, world, told))
    (folder / "config_with_planner.yaml").write_text("a: b", encoding="utf-8")
    ends(world, 0)
    code, said = ended(copier)
    assert 0 == code, said
    found = world.read(CONFIG_MAP, "dgdr-output-chat")
    assert {"profiler_status.yaml", "config_with_planner.yaml"} == found["data"].keys()


TOO_LARGE = "the results have 1200000 bytes(;|, and) a ConfigMap holds 1048576"


@pytest.mark.parametrize(
    ("text", "code", "fresh", "exit_code", "reason"),
    [
        ("half", 2, (), 0, "the profiler ended with exit code 2: nothing is copied"),
        ("", 0, (), 1, "has not written|did not write"),
        ("old", 0, ("fresh",), 1, "has not written|did not write"),
        ("x" * 600_000, 0, (), 1, TOO_LARGE),
    ],
    ids=["failed", "nothing", "earlier run", "too large"],
)
def test_what_is_no_result_is_not_copied(
    text: str,
    code: int,
    fresh: tuple[str, ...],
    exit_code: int,
    reason: str,
    world: World,
    run: Run,
    tmp_path: Path,
) -> None:
    for name in ("config_with_planner.yaml", "mocker_config_with_planner.yaml") if text else ():
        (tmp_path / "data" / name).write_text(text, encoding="utf-8")
        os.utime(tmp_path / "data" / name, (1_000_000_000, 1_000_000_000))
    world.patch(PODS, "pod", {"status": {"startTime": "2026-01-01T00:00:00Z"}}, "status")
    ends(world, code)
    ended_with, said = ended(run(*fresh, COPIER_PAUSE_SECONDS="600"))
    assert exit_code == ended_with
    assert re.search(reason, said)
    assert world.get(CONFIG_MAP, "dgdr-output-chat") is None


def test_it_does_not_wait_for_ever_for_an_api_server_that_says_nothing(run: Run) -> None:
    code, said = ended(run(HOSTNAME="no-such-pod", COPIER_TRIES="2", COPIER_PAUSE_SECONDS="1"))
    assert 1 == code
    assert re.search("no answer from the API server for|has not told for 2 seconds", said)
