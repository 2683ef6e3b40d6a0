"""The service account of a pod: its token is replaced while we run."""

import asyncio
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from kube_runtime.client.http import InCluster, is_in_cluster, namespace
from kube_runtime.errors import ConfigError
from scripted.server import an_authority

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def token_of(credentials: InCluster) -> str:
    return (await credentials.config()).headers["Authorization"]


def a_service_account(folder: Path) -> Path:
    (folder / "ca.crt").write_bytes(an_authority(folder / "authority").pem)
    (folder / "token").write_text("one\n")
    (folder / "namespace").write_text("dynamo-system")
    return folder


async def test_the_token_is_presented_and_read_again_when_it_is_old(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path), reread_seconds=0.5)
    with blockbuster_ctx("kube_runtime"):
        before = await credentials.config()
    assert {"Authorization": "Bearer one"} == before.headers
    (tmp_path / "token").write_text("two")
    assert "Bearer one" == await token_of(credentials)
    await asyncio.sleep(0.6)
    after = await credentials.config()
    assert {"Authorization": "Bearer two"} == after.headers
    assert before.tls is after.tls


async def test_a_young_token_is_not_read_again(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path))
    await credentials.config()
    (tmp_path / "token").unlink()
    assert "Bearer one" == await token_of(credentials)


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path))
    await credentials.config()
    (tmp_path / "token").write_text("two")
    await credentials.refresh()
    assert "Bearer two" == await token_of(credentials)


async def test_a_new_authority_is_taken_up(tmp_path: Path) -> None:
    credentials = InCluster(POD, a_service_account(tmp_path))
    before = await credentials.config()
    (tmp_path / "ca.crt").write_bytes(an_authority(tmp_path / "new").pem)
    await credentials.refresh()
    assert before.tls is not (await credentials.config()).tls


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        (POD, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "https://10.0.0.1:443"),
        ({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, "https://[fd00::1]:443"),
    ],
)
def test_the_server_comes_from_the_environment(environ: dict[str, str], url: str) -> None:
    assert url == InCluster(environ).server


@pytest.mark.parametrize("name", ["token", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\x00 "])
async def test_an_unusable_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = a_service_account(tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        await InCluster(POD, folder).config()
    assert str(folder / name) == caught.value.source


def test_the_namespace_is_the_pods(tmp_path: Path) -> None:
    assert "dynamo-system" == namespace(a_service_account(tmp_path))
    with pytest.raises(ConfigError, match="No such file"):
        namespace(tmp_path / "nix")


def test_a_pod_has_both_environment_and_token(tmp_path: Path) -> None:
    assert not is_in_cluster(POD, tmp_path)
    a_service_account(tmp_path)
    assert is_in_cluster(POD, tmp_path)
    assert not is_in_cluster({}, tmp_path)
