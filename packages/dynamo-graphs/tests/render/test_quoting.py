"""What a user writes as an argument reaches the engine as it is, through every shell on the way."""

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs.api.annotations import GROVE, recorded
from dynamo_graphs.facts import Facts
from dynamo_graphs.offline import graph_tree
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation.graph import graph_problems
from kube_runtime.kind import Object
from specs import a_graph

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="dynamo")
GROVE_NAMES = {"GROVE_PCSG_NAME": "g", "GROVE_PCSG_INDEX": "0", "GROVE_HEADLESS_SERVICE": "h"}
SPECIAL = ("$HOME", "$(id)", "`id`", "$((1))", "'", '"', "\\", "!", "*", "~", "a;b", "&&", "#x", "")
TEXTS = st.sampled_from(SPECIAL) | st.text(
    st.characters(exclude_characters="\0$", exclude_categories=["Cs"]), max_size=8
)


@functools.cache
def programs() -> Path:
    """A folder with engines that print their arguments, and with what starts them."""
    folder = Path(tempfile.mkdtemp(prefix="programs"))
    texts = {
        "python3": r"""printf 'engine\0'; printf '%s\0' "$@" """,
        "ray": "",
        "trtllm-llmapi-launch": 'exec "$@"',
        "mpirun": 'while [ "$1" != bash ]; do shift; done; exec "$@"',
        **dict.fromkeys(("cp", "ls", "chmod", "mkdir", "getent", "sed", "date"), ""),
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    (folder / ".ssh").mkdir()
    for shell in ("sh", "bash"):
        (folder / shell).symlink_to(f"/bin/{shell}")
    return folder


def container(framework: str, args: list[str], *, on_grove: bool, is_leader: bool) -> Object | None:
    """The main container of a pod of a group. None means: validation refuses the command."""
    main = {"image": "i", "command": ["python3", "-m", f"dynamo.{framework}"], "args": args}
    service: dict[str, Any] = {
        "componentType": "worker",
        "multinode": {"nodeCount": 2},
        "resources": {"limits": {"gpu": "8"}},
        "extraPodSpec": {"mainContainer": main},
    }
    graph = a_graph({"W": service}, backendFramework=framework)
    graph = recorded(graph, GROVE) if on_grove else graph
    if graph_problems(graph, SETTINGS):
        return None
    for each in graph_tree(graph, Facts(grove_served=on_grove), SETTINGS):
        found = each.get("spec", {})
        if each["kind"] == "LeaderWorkerSet":
            side = "leaderTemplate" if is_leader else "workerTemplate"
            pod = found["leaderWorkerTemplate"][side]["spec"]
            break
        if each["kind"] == "PodCliqueSet":
            pod = found["template"]["cliques"][0 if is_leader else 1]["spec"]["podSpec"]
            break
    else:
        raise AssertionError("no pods")
    main_container: Object = pod["containers"][-1]
    return main_container


def by_the_kubelet(text: str, variables: dict[str, str]) -> str:
    """The argument with the references to variables that exist resolved."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


def received(found: Object) -> list[str]:
    """The arguments that the engine gets."""
    folder = programs()
    variables = {"LWS_LEADER_ADDRESS": "l", "LWS_WORKER_INDEX": "1", **GROVE_NAMES}
    command = [*found["command"], *(by_the_kubelet(each, variables) for each in found["args"])]
    environment = {**variables, "GROVE_PCLQ_POD_INDEX": "0", "PATH": str(folder)}
    answer = subprocess.run(  # noqa: S603  # the shell, with our own programs
        [str(folder / command[0].rpartition("/")[2]), *command[1:]],
        env={**environment, "HOME": str(folder)},
        capture_output=True,
        check=True,
    )
    return answer.stdout.decode().partition("engine\0")[2].split("\0")[:-1]


@pytest.mark.parametrize("on_grove", [False, True])
@pytest.mark.parametrize(
    ("framework", "is_leader", "flags"),
    [
        ("vllm", True, ["--tensor-parallel-size", "16"]),
        ("vllm", True, ["--data-parallel-size", "16"]),
        ("vllm", False, ["--data-parallel-size", "16"]),
        ("sglang", True, []),
        ("sglang", False, []),
        ("trtllm", True, []),
    ],
)
@settings(max_examples=settings().max_examples // 5)  # for each of twelve ways, with real shells
@given(texts=st.lists(TEXTS, max_size=4))
def test_arguments_reach_the_engine_as_they_are(
    framework: str, flags: list[str], texts: list[str], *, is_leader: bool, on_grove: bool
) -> None:
    args = [*flags, "--", *texts]
    found = container(framework, args, on_grove=on_grove, is_leader=is_leader)
    if found is None:
        return
    said = ["-m", f"dynamo.{framework}", *args]
    assert said == received(found)[: len(said)]
