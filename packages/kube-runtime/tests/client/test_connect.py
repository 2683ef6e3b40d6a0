"""Finding the API server: flag, KUBECONFIG, pod, home, in this order."""

from pathlib import Path

import pytest
import yaml

from kube_runtime.client.connect import connect, default_namespace
from kube_runtime.errors import ConfigError
from scripted.server import an_authority

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def a_kubeconfig(path: Path, server: str) -> Path:
    content = {
        "current-context": "a",
        "contexts": [
            {"name": "a", "context": {"cluster": "a"}},
            {"name": "other", "context": {"cluster": "other", "namespace": "team"}},
        ],
        "clusters": [
            {"name": "a", "cluster": {"server": server}},
            {"name": "other", "cluster": {"server": "https://other"}},
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


class World:
    """Every place where credentials may be."""

    def __init__(self, folder: Path) -> None:
        self.flag = a_kubeconfig(folder / "flag", "https://flag")
        self.one = a_kubeconfig(folder / "one", "https://one")
        self.home = folder / "home"
        a_kubeconfig(self.home / ".kube" / "config", "https://home")
        self.pod = folder / "pod"
        self.pod.mkdir()
        (self.pod / "token").write_text("t")
        (self.pod / "namespace").write_text("own\n")
        (self.pod / "ca.crt").write_bytes(an_authority(folder / "authority").pem)
        self.nothing = folder / "nothing"

    async def server(
        self,
        kubeconfig: Path | None = None,
        context: str | None = None,
        environ: dict[str, str] | None = None,
        home: Path | None = None,
    ) -> str:
        transport = await connect(
            kubeconfig,
            context,
            environ=environ or {},
            home=home or self.home,
            service_account=self.pod,
        )
        await transport.aclose()
        return (await transport.credentials.config()).server


async def test_the_flag_wins(tmp_path: Path) -> None:
    world = World(tmp_path)
    environ = {"KUBECONFIG": str(world.one), **POD}
    assert "https://flag" == await world.server(world.flag, environ=environ)


async def test_then_the_environment_its_missing_files_left_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    environ = {"KUBECONFIG": f"{world.nothing}::{world.one}:{world.flag}", **POD}
    assert "https://one" == await world.server(environ=environ)


async def test_then_the_pod(tmp_path: Path) -> None:
    assert "https://10.0.0.1:443" == await World(tmp_path).server(environ=POD)


async def test_a_named_context_is_looked_for_in_files_only(tmp_path: Path) -> None:
    assert "https://other" == await World(tmp_path).server(context="other", environ=POD)


async def test_then_the_home_folder(tmp_path: Path) -> None:
    assert "https://home" == await World(tmp_path).server()


async def test_when_there_is_nothing_it_says_what_was_tried(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(ConfigError) as caught:
        await world.server(home=world.nothing)
    assert (
        "credentials: none found: no --kubeconfig, KUBECONFIG is not set, not in a pod, "
        f"no {world.nothing}/.kube/config"
    ) == str(caught.value)


async def test_a_kubeconfig_variable_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(ConfigError, match=r"^KUBECONFIG: no such file: .*nothing$"):
        await world.server(environ={"KUBECONFIG": str(world.nothing), **POD})


async def test_unusable_credentials_fail_at_once_not_at_the_first_request(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        await connect(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("context", "environ", "namespace"),
    [(None, {}, "default"), ("other", {}, "team"), (None, POD, "own")],
)
async def test_the_namespace_is_that_of_the_context_or_of_the_pod(
    tmp_path: Path, context: str | None, environ: dict[str, str], namespace: str
) -> None:
    world = World(tmp_path)
    transport = await connect(context=context, environ=environ, home=world.home, service_account=world.pod)
    async with transport:
        assert namespace == await default_namespace(transport)
