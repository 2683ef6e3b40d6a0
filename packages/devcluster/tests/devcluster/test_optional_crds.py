from pathlib import Path

import pytest
import yaml

from devcluster import optional_crds
from devcluster.progress import Silent
from kube_runtime.errors import ConfigError

GO = """#!/bin/sh
case "$1" in
version) echo "go version go1.99.0 linux/amd64" ;;
*) {answer} ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dynamo-operator" / "controlplane"


def use_go(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    program = folder / "path" / "go"
    program.parent.mkdir()
    program.write_text(GO.format(answer=answer))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"lsw: is none of grove, .*lws"):
        optional_crds.files(["lsw"], Silent())


@pytest.mark.parametrize("name", ["grove", "kai", "podgroup"])
def test_definitions_written_here_keep_unknown_fields(name: str) -> None:
    (file,) = optional_crds.files([name, name], Silent())
    for definition in yaml.safe_load_all(file.read_text()):
        names = definition["spec"]["names"]
        (version,) = definition["spec"]["versions"]
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        assert f"{names['plural']}.{definition['spec']['group']}" == definition["metadata"]["name"]
        assert all(properties[part]["x-kubernetes-preserve-unknown-fields"] for part in ("spec", "status"))


def test_a_module_with_another_sum_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(tmp_path, monkeypatch, """echo '{"Dir": "/nowhere", "Sum": "h1:other="}'""")
    with pytest.raises(ConfigError, match=r"sigs.k8s.io/lws@v\S+: has the sum h1:other="):
        optional_crds.files(["lws"], Silent())
    assert {".lock"} == {file.suffix for file in cache.rglob("*") if file.is_file()}


def test_a_failed_download_is_one_line(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_go(tmp_path, monkeypatch, """echo '{"Error": "no\\\\nnetwork"}'; exit 1""")
    with pytest.raises(ConfigError) as raised:
        optional_crds.files(["istio"], Silent())
    assert str(raised.value).endswith("cannot be downloaded: no network")


def test_only_the_wanted_definition_is_taken_and_asked_for_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "module" / "kubernetes"
    module.mkdir(parents=True)
    wanted = "virtualservices.networking.istio.io"
    (module / "customresourcedefinitions.gen.yaml").write_text(
        f"metadata: {{name: other}}\n---\nmetadata: {{name: {wanted}}}\n---\n"
    )
    known = optional_crds.MODULES["istio"].sum
    answer = f"""echo '{{"Dir": "{module.parent}", "Sum": "{known}"}}'"""
    use_go(tmp_path, monkeypatch, answer)
    (file,) = optional_crds.files(["istio"], Silent())
    assert {"metadata": {"name": wanted}} == yaml.safe_load(file.read_text())

    monkeypatch.setenv("PATH", "/nowhere")
    assert [file] == optional_crds.files(["istio"], Silent())
