"""The commands of the pages, in the order in which users read them, on one playground.

What differs is named here: what a page expects to exist, programs that run until they are stopped, and that
one playground is used by all pages. `pytest -rP` prints the seconds of each page. The commands of
installations are those of `test_new_users.py`, `make demo` is in `controlplane/test_processes.py`;
`docs/try-it.md` needs Docker.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sys.executable).parent
CHAT = "dynamoctl new chat --model Qwen/Qwen3-8B --gpu h200_sxm > chat.yaml"
PAGES: dict[str, Sequence[str]] = {
    "docs/quickstart.md": (),
    "docs/local-control-plane.md": (),
    "docs/guides/serving.md": (),
    "docs/own-model.md": (
        "kubectl delete dgd chat",
        "export HF_TOKEN=x",
        "kubectl delete secret hf-token-secret",
    ),
    "docs/guides/gitops.md": (
        f"mkdir graphs && cd graphs && {CHAT}",
        "dynamoctl apply -f graphs/chat.yaml --wait",
        "dynamoctl new chat --model Qwen/Qwen3-0.6B --gpu h200_sxm | dynamoctl apply -f - --wait",
    ),
    "docs/guides/several-nodes.md": (),
    "docs/guides/nodes.md": (),
    "docs/guides/quotas.md": (),
}
"""Page → what is done before its commands."""

ELSEWHERE = re.compile(r"git clone|make |dynamoctl dev (up|down)|eval |dynamoctl chat my-deployment")
"""Commands that the fixture or another test runs. The LoRA of `own-model.md` is that of `models.md`."""
ENDLESS = re.compile(r"--watch|port-forward")
ANSWERS_IN_ITS_CODE = re.compile(r"dynamoctl (why|diff) ")
"""1: it is not ready yet, or there is a difference."""


def commands(page: str) -> list[str]:
    """The commands of a page, without what they print."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = list[str]()
    for language, block in re.findall(r"^```(sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        shown = block.replace("\\\n", " ").splitlines()
        if language == "console":
            shown = [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]
        lines += [line for line in shown if line.strip()]
    return [line for line in lines if not ELSEWHERE.match(line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the examples, as a clone has them, and a playground without graphs."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    run("dynamoctl dev up", folder)
    (exported,) = re.findall(r"export KUBECONFIG=(\S+)", run("dynamoctl dev env", folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", exported)
        run("kubectl delete dgd --all --all-namespaces", folder)
        yield folder


def run(line: str, folder: Path) -> str:
    """What a line prints that succeeds."""
    script = line.partition(" #")[0]
    if ENDLESS.search(line):
        script = f"timeout 10 {script} || test $? -eq 124"
    elif ANSWERS_IN_ITS_CODE.match(line):
        script = f"{script} || test $? -eq 1"
    done = subprocess.run(  # noqa: S603  the commands of our own pages
        ["/bin/sh", "-euc", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_in_their_order(page: str, folder: Path) -> None:
    began = time.monotonic()
    exports = [line for line in PAGES[page] if line.startswith("export ")]
    for line in (*PAGES[page], *commands(page)):
        if line not in exports:
            run("; ".join((*exports, line)), folder)
    print(f"{page}: {len(commands(page))} commands in {time.monotonic() - began:.0f} s")  # noqa: T201


def test_every_page_has_commands_that_are_run() -> None:
    for page in PAGES:
        assert commands(page), page


def test_the_first_minute_of_the_readme_needs_no_cluster(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## A first minute")[2].partition("\n## ")[0]
    (line,) = re.findall(r"^dynamoctl .+$", section, re.MULTILINE)
    environment = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(  # noqa: S603  the README's own command
        ["/bin/sh", "-euc", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    assert "kind: Deployment" in done.stdout
