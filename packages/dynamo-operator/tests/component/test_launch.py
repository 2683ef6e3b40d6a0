"""Where our flags land in a command that a user wrote."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.launch import Fragment, GroupNode, Word, in_script, with_flags
from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import component_plan, hosts
from dynamo_operator.names import group_name
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import IMAGE, a_component

PLAIN: list[Word] = ["--rank", "0"]
LATE: list[Word] = ["--rank", Fragment("$((N + 1))")]


@pytest.mark.parametrize(
    "program",
    ["python", "python3", "python3.12.1", "/opt/x/python3.11", "/usr/bin/python", "numactl -m 0 python3"],
)
def test_flags_of_a_python_program_are_appended_to_its_arguments(program: str) -> None:
    container = {"command": [*program.split(), "-m", "dynamo.sglang"], "args": ["--tp", "16"]}
    assert {**container, "args": ["--tp", "16", "--rank", "0"]} == with_flags(container, PLAIN, "sglang")
    del container["args"]
    assert ["--rank", "0"] == with_flags(container, PLAIN, "sglang")["args"]


def test_a_program_goes_through_a_shell_when_only_a_shell_knows_a_value() -> None:
    container = {"command": ["python3", "-m", "dynamo.sglang"], "args": ["--x", '{"a": 1}']}
    script = "exec python3 -m dynamo.sglang --x '{\"a\": 1}' --rank $((N + 1))"
    assert {"command": ["sh", "-c"], "args": [script]} == with_flags(container, LATE, "sglang")


@pytest.mark.parametrize("program", ["python-config", "pythonx", "python3 ", "/opt/own"])
def test_a_program_other_than_python_gets_no_flags(program: str) -> None:
    container = {"command": [program], "args": ["--own"]}
    assert container == with_flags(container, LATE, "sglang")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python3 -m dynamo.vllm", "python3 -m dynamo.vllm F"),
        ("python3 -m dynamo.vllm --a b", "python3 -m dynamo.vllm F --a b"),
        ("cd /w && python3 -m dynamo.vllm 2>&1 | tee l", "cd /w && python3 -m dynamo.vllm F 2>&1 | tee l"),
        ("python3 -m dynamo.vllm;date", "python3 -m dynamo.vllm F;date"),
        ("python3 -m dynamo.vllm --model /m/vllm-x --b", "python3 -m dynamo.vllm --model /m/vllm-x F --b"),
        ("python -m dynamo.vllm & python3 vllm", "python -m dynamo.vllm F & python3 vllm F"),
        ("python3 -m other", "python3 -m other"),
    ],
)  # fmt: skip
def test_flags_in_a_script_follow_the_framework(script: str, expected: str) -> None:
    container = {"command": ["/bin/sh", "-c"], "args": [script]}
    assert [expected] == with_flags(container, ["F"], "vllm")["args"]


def test_only_the_first_argument_that_starts_the_framework_is_changed() -> None:
    container = {"command": ["sh", "-c"], "args": ["date", "python3 -m dynamo.vllm", "python3 vllm"]}
    expected = ["date", "python3 -m dynamo.vllm F", "python3 vllm"]
    assert expected == with_flags(container, ["F"], "vllm")["args"]


REFERENCE = re.compile(r"(python[0-9.]*[\t\n\f\r ]+[^|&;]*vllm[^|&;]*?)([\t\n\f\r ]|\Z|[|&;])")
"""As the reference says it."""
PIECES = ["python ", "python", "3", ".", "x", " ", "\n", "\v", "-m ", "dynamo.", "vllm", "|", "&", ";"]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_flags_in_a_script_are_inserted_as_by_the_go_operator(script: str) -> None:
    expected = REFERENCE.sub(lambda found: f"{found[1]} F{found[2]}", script)
    assert expected == in_script(script, ["F"], "vllm")


@pytest.mark.parametrize("text", ["python ", "python -m ", "python3", "vllm "])
def test_a_long_script_is_changed_in_time_that_grows_like_its_length(text: str) -> None:
    script = text * 200_000
    assert script == in_script(script, ["F"], "vllm")


SETTINGS = RenderSettings(mpi_secret_name="mpi-keys")
VLLM = ["python3", "-m", "dynamo.vllm"]


def mains(gpus: str = "8", **main: Any) -> list[Object]:
    """The main containers of leader and worker."""
    component = a_component(
        componentType="worker",
        multinode={"nodeCount": 2},
        resources={"limits": {"gpu": gpus}} if gpus else {},
        extraPodSpec={"mainContainer": {"image": IMAGE, **main}},
    )
    plan = component_plan(component, Facts(), SETTINGS)
    pods = [pod_spec(plan, GroupNode(leads, hosts(2))) for leads in (True, False)]
    return [pod["containers"][-1] for pod in pods]


def started(**what: Any) -> list[list[str]]:
    """Command and arguments of leader and worker, as one list each."""
    return [[*each["command"], *each.get("args", ())] for each in mains(**what)]


@pytest.mark.parametrize(
    ("args", "mode"),
    [
        (["--tensor-parallel-size", "16"], "ray"),
        (["--tensor-parallel-size=16"], "ray"),
        (["--tensor_parallel_size", "16"], "ray"),
        (["-tp", "4", "-pp", "4"], "ray"),
        (["--tensor-parallel-size", "much", "--tensor-parallel-size", "16"], "ray"),
        (["-tp", "8", "-dp", "2"], "data"),
        (["--data-parallel-size=16"], "data"),
        (["--tensor-parallel-size", "8"], "alone"),
        (["--tensor-parallel-size", "0"], "alone"),
        ([], "alone"),
    ],
)
def test_the_sizes_in_a_command_decide(args: list[str], mode: str) -> None:
    marks = {"ray": "ray start", "data": "--data-parallel-rpc-port", "alone": "dynamo.vllm"}
    for way in ({"args": args}, {"command": [*VLLM, *args]}):
        what = {"command": VLLM, **way}
        for each in started(**what):
            assert marks[mode] in " ".join(each)
            assert mode != "alone" or each == [*what["command"], *what.get("args", [])]


def test_without_gpus_every_node_of_vllm_runs_for_itself() -> None:
    leader, worker = started(gpus="", command=VLLM, args=["--tensor-parallel-size", "16"])
    assert leader == worker == [*VLLM, "--tensor-parallel-size", "16"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python3 -m dynamo.vllm \\\n  -tp 16\n", "python3 -m dynamo.vllm RAY \\\n  -tp 16"),
        ("python3 -m dynamo.vllm -tp 16 | tee l", "python3 -m dynamo.vllm RAY -tp 16 | tee l"),
    ],
)
def test_the_flag_of_ray_stands_behind_the_framework_where_a_script_goes_on(
    script: str, expected: str
) -> None:
    leader, _ = started(command=["bash", "-c"], args=[script])
    flagged = expected.replace("RAY", "--distributed-executor-backend ray")
    assert ["bash", "-c", f"ray start --head --port=6379 && {flagged}"] == leader


def test_a_follower_keeps_its_own_ports_and_runs_as_root_only_where_it_may() -> None:
    own = {"name": "own", "containerPort": 1}
    ports = [own, {"name": "system", "containerPort": 9090}]
    trtllm: dict[str, Any] = {"command": ["python3", "-m", "dynamo.trtllm"], "ports": ports}
    leader, worker = mains(**trtllm, securityContext={"runAsNonRoot": True})
    assert [own] == worker["ports"]
    assert "--allow-run-as-root" not in leader["args"][0]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins: mpirun starts what comes behind its own flags, the launcher prints what it gets."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "mpirun").write_text(
        '#!/bin/sh\nwhile [ "$1" != bash ]; do shift; done\nshift\nexec /bin/sh "$@"\n'
    )
    # Like the real one, it does not overwrite a key without being asked.
    (folder / "ssh-keygen").write_text('#!/bin/sh\n[ ! -e "$4" ] && : > "$4"\n')
    (folder / "sshd").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "trtllm-llmapi-launch").write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    for each in folder.iterdir():
        each.chmod(0o755)
    return folder


def run(script: str, programs: Path, **environment: str) -> str:
    found = subprocess.run(  # noqa: S603  # our own text, with stand-ins for the programs
        ["/bin/sh", "-c", script],
        env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": "/home/u", **environment},
        capture_output=True,
        check=True,
    )
    return found.stdout.decode()


def test_a_worker_lets_others_in_with_files_below_its_own_home(programs: Path, tmp_path: Path) -> None:
    _, worker = started(command=["python3", "-m", "dynamo.trtllm"])
    keys, home = tmp_path / "keys", tmp_path / "home"
    keys.mkdir()
    for name in ("private.key", "private.key.pub"):
        (keys / name).write_text(name)
    moved = {"/ssh-pk": str(keys), "/run/sshd": str(tmp_path / "run"), "/usr/sbin/sshd": "sshd"}
    script = worker[2]
    for old, new in moved.items():
        script = script.replace(old, new)
    for _ in ("first start", "restart on the same volume"):
        assert f"-D -f {home}/.ssh/sshd_config" in run(script, programs, HOME=str(home))
    assert "private.key" == (home / ".ssh/id_rsa").read_text()
    assert 0o600 == (home / ".ssh/id_rsa").stat().st_mode & 0o777
    assert "private.key.pub" == (home / ".ssh/authorized_keys").read_text()
    assert f"IdentityFile {home}/.ssh/id_rsa" in (home / ".ssh/config").read_text().splitlines()
    lines = (home / ".ssh/sshd_config").read_text().splitlines()
    assert "Port 2222" == lines[0]
    assert f"HostKey {home}/.ssh/host_keys/ssh_host_ed25519_key" in lines
    assert f"AuthorizedKeysFile {home}/.ssh/authorized_keys" == lines[-1]


def test_names_of_groups_leave_room_for_what_is_made_below_them() -> None:
    found = {group_name("a" * 63, index) for index in range(3)} | {group_name("w" * 48, 7)}
    assert 4 == len(found)
    for name in found:
        assert 63 >= len(f"{name}-0-5d4f8c7b99")
    assert "g-w-0" == group_name("g-w", 0)
