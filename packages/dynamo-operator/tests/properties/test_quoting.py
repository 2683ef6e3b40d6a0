"""What a user writes as an argument reaches the engine as it is, through every shell on the way."""

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.framework import is_shell
from dynamo_operator.component.launch import Fragment, Word, quoted, shell_line
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from kubelet import command_line
from specs import a_graph

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="dynamo")
SPECIAL = ("$HOME", "$(id)", "`id`", "$((1))", "'", '"', "\\", "!", "*", "~", "a;b", "&&", "#x", "")
REFERENCES = ("$(", "$$(", "$$", "$$(LWS_GROUP_SIZE)", "$(LWS_GROUP_SIZE)", "$(GROVE_PCSG_INDEX)")
TEXTS = st.sampled_from((*SPECIAL, *REFERENCES)) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)


@functools.cache
def programs() -> Path:
    """A folder with programs that note how they were started, and with the shells that start them."""
    folder = Path(tempfile.mkdtemp(prefix="programs"))
    notes = r"""printf '%s\0' "$#" "${0##*/}" "$@" >> "$HOME/started" """
    silent = ("cp", "ls", "chmod", "mkdir", "rm", "getent", "date", "ssh-keygen")
    texts = {
        **dict.fromkeys(("python3", "ray"), notes),
        "mpirun": f'{notes}; while [ "$1" != bash ]; do shift; done; exec "$@"',
        "trtllm-llmapi-launch": 'exec "$@"',
        **dict.fromkeys(silent, ""),
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    (folder / ".ssh").mkdir()
    for real in ("sh", "bash", "sed"):
        (folder / real).symlink_to(f"/bin/{real}")
    return folder


def group(framework: str, main: Object, nodes: int = 2, *, on_grove: bool) -> list[Object]:
    """The pod specs of a group's leader and workers. Empty means: validation refuses the command."""
    service: dict[str, Any] = {
        "componentType": "worker",
        "multinode": {"nodeCount": nodes},
        "resources": {"limits": {"gpu": "8"}},
        "extraPodSpec": {"mainContainer": {"image": "i", **main}},
    }
    graph = a_graph({"W": service}, backendFramework=framework)
    graph = on_provider(graph, GROVE) if on_grove else graph
    if graph_problems(graph, SETTINGS):
        return []
    for each in graph_tree(graph, Facts(grove_served=on_grove), SETTINGS):
        found = each.get("spec", {})
        if each["kind"] == "LeaderWorkerSet":
            both = found["leaderWorkerTemplate"]
            return [both[side]["spec"] for side in ("leaderTemplate", "workerTemplate")]
        if each["kind"] == "PodCliqueSet":
            return [clique["spec"]["podSpec"] for clique in found["template"]["cliques"]]
    raise AssertionError("no pods")


def place(index: int, *, on_grove: bool) -> dict[str, str]:
    """what the orchestrator passes to the pods of a group; 0 is the leader."""
    if on_grove:
        return {
            "GROVE_PCSG_NAME": "g-0-w",
            "GROVE_PCSG_INDEX": "0",
            "GROVE_HEADLESS_SERVICE": "g-0.lab.svc",
            "GROVE_PCLQ_POD_INDEX": str(max(index - 1, 0)),
        }
    return {"LWS_LEADER_ADDRESS": "g-w-0-0.g-w-0.lab", "LWS_WORKER_INDEX": str(index), "LWS_GROUP_SIZE": "3"}


def addresses(nodes: int, *, on_grove: bool) -> list[str]:
    """The addresses of the pods of a group, the leader's first."""
    if on_grove:
        names = ["ldr-0", *(f"wkr-{index}" for index in range(nodes - 1))]
        return [f"g-0-w-0-w-{name}.g-0.lab.svc" for name in names]
    names = ["g-w-0-0", *(f"g-w-0-0-{index}" for index in range(1, nodes))]
    return [f"{name}.g-w-0.lab" for name in names]


def started(found: Object, variables: dict[str, str]) -> list[list[str]]:
    """The command lines of engines, Ray and mpirun that run in the container, in their order."""
    folder = programs()
    own = {each["name"]: each["value"] for each in found["env"] if "value" in each}
    variables = {**own, **variables}
    program, *arguments = command_line(found, variables)
    answer = subprocess.run(  # noqa: S603  # the shell, with our own programs
        [str(folder / program.rpartition("/")[2]), *arguments],
        env={**variables, "PATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        check=False,
    )
    assert not answer.stderr, answer.stderr
    notes = folder / "started"
    words = iter(notes.read_bytes().decode().split("\0")[:-1])
    notes.unlink()
    return [[next(words) for _ in range(int(count) + 1)] for count in words]


VLLM = "python3 -m dynamo.vllm"
RANKS = "--data-parallel-hybrid-lb --data-parallel-size-local 8 --data-parallel-start-rank"
RPC = "--data-parallel-rpc-port 13445"
SGLANG = "python3 -m dynamo.sglang"


@pytest.mark.parametrize("on_grove", [False, True])
@pytest.mark.parametrize("in_a_shell", [False, True])
@pytest.mark.parametrize(
    ("framework", "flags", "leader", "worker"),
    [
        (
            "vllm",
            "--tensor-parallel-size 24",
            (
                "ray start --head --port=6379\n"
                f"{VLLM} --tensor-parallel-size 24 --distributed-executor-backend ray"
            ),
            "ray start --address={leader}:6379 --block",
        ),
        (
            "vllm",
            "--data-parallel-size 24",
            f"{VLLM} --data-parallel-size 24 {RANKS} 0 --data-parallel-address {{leader}} {RPC}",
            f"{VLLM} --data-parallel-size 24 {RANKS} {{first}} --data-parallel-address {{leader}} {RPC}",
        ),
        (
            "sglang",
            "--tp 24",
            f"{SGLANG} --tp 24 --dist-init-addr {{leader}}:29500 --nnodes 3 --node-rank 0",
            f"{SGLANG} --tp 24 --dist-init-addr {{leader}}:29500 --nnodes 3 --node-rank {{rank}}",
        ),
        ("trtllm", "--x", "mpirun --oversubscribe -n 24 -H {all}\npython3 -m dynamo.trtllm --x", ""),
    ],
)
def test_every_pod_of_a_group_starts_in_its_place(
    framework: str, flags: str, leader: str, worker: str, *, in_a_shell: bool, on_grove: bool
) -> None:
    words = ["python3", "-m", f"dynamo.{framework}", *flags.split()]
    main: Object = {"command": words[:3], "args": words[3:]}
    if in_a_shell:
        main = {"command": ["/bin/bash", "-c"], "args": [" ".join(words)]}
    pods = group(framework, main, nodes=3, on_grove=on_grove)
    known = addresses(3, on_grove=on_grove)
    for rank in range(3 if worker else 1):  # TensorRT-LLM's workers only run sshd
        pod = pods[min(rank, 1)]
        variables = place(rank, on_grove=on_grove)
        expected = (worker if rank else leader).format(
            leader=known[0], all=",".join(known), rank=rank, first=8 * rank
        )
        lines = started(pod["containers"][-1], variables)
        wanted = expected.splitlines()
        assert len(wanted) == len(lines)
        assert all(set(line.split()) <= set(found) for line, found in zip(wanted, lines, strict=True))
        for wait in pod.get("initContainers", []):
            assert known[0] == command_line(wait, variables)[2]


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
    """They are what the kubelet passes to an engine that starts without a shell."""
    args = [*flags, "--", *texts]
    main: Object = {"command": ["python3", "-m", f"dynamo.{framework}"], "args": args}
    pods = group(framework, main, on_grove=on_grove)
    if not pods:
        return
    variables = place(0 if is_leader else 1, on_grove=on_grove)
    *_, said = started(pods[0 if is_leader else 1]["containers"][-1], variables)
    expected = command_line(main, variables)
    assert expected == said[: len(expected)]


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


def output_of(script: str, **environment: str) -> bytes:
    """What a real shell prints."""
    command = ["/bin/sh", "-c", script]
    return subprocess.run(  # noqa: S603  # the shell, with our own text
        command, env=environment, capture_output=True, check=True
    ).stdout


def read_by_a_shell(words: str, **environment: str) -> list[str]:
    """The words that a real shell makes of a line."""
    return output_of(f"printf '%s\\0' {words}", **environment).decode().split("\0")[:-1]


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_texts_reach_a_program_as_they_are(texts: list[str]) -> None:
    assert texts == read_by_a_shell(shell_line(texts))


@pytest.mark.parametrize("text", ["--model", "acme/chat-7b", "a=b", "16", "x,y:z", "/opt/a_b.c"])
def test_a_plain_text_stays_without_quotes(text: str) -> None:
    assert text == quoted(text)


def test_a_fragment_is_for_the_shell_and_the_same_text_of_a_user_is_not() -> None:
    words: list[Word] = [Fragment("$((RANK + 1))"), "$((RANK + 1))"]
    assert ["3", "$((RANK + 1))"] == read_by_a_shell(shell_line(words), RANK="2")


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (["/bin/sh", "-c"], True),
        (["bash", "-lc"], True),
        (["/usr/bin/bash", "-euo", "pipefail", "-c"], True),
        (["sh"], False),
        (["python3", "-c"], False),
        (["/opt/push", "-c"], False),
        ([], False),
    ],
)
def test_a_shell_is_told_from_other_programs(command: list[str], is_one: bool) -> None:
    assert is_one == is_shell(command)
