"""Finding the API server: flag, KUBECONFIG, pod, home, in this order."""

from pathlib import Path

import pytest
import yaml

from kube_runtime.client.connect import connect
from kube_runtime.client.kubeconfig import default_namespace
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
        for name in ("flag", "one"):
            a_kubeconfig(folder / name, f"https://{name}")
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
        environ: dict[str, str],
        flag: Path | None = None,
        context: str | None = None,
        home: Path | None = None,
    ) -> str:
        transport = await connect(
            flag, context, environ=environ, home=home or self.home, service_account=self.pod
        )
        await transport.aclose()
        return (await transport.credentials.config()).server


@pytest.mark.parametrize(
    ("flag", "context", "variable", "is_pod", "server"),
    [
        ("flag", None, ["one"], True, "https://flag"),
        (None, None, ["nothing", "", "one", "flag"], True, "https://one"),
        (None, None, [], True, "https://10.0.0.1:443"),
        (None, "other", [], True, "https://other"),
        (None, None, [], False, "https://home"),
    ],
    ids=["flag", "KUBECONFIG, missing files left out", "pod", "a context is in files only", "home"],
)
async def test_the_first_place_with_credentials_counts(
    tmp_path: Path, flag: str | None, context: str | None, variable: list[str], is_pod: bool, server: str
) -> None:
    world = World(tmp_path)
    environ = dict(POD) if is_pod else {}
    if variable:
        environ["KUBECONFIG"] = ":".join(name and str(tmp_path / name) for name in variable)
    assert server == await world.server(environ, tmp_path / flag if flag else None, context)


async def test_when_there_is_nothing_it_says_what_was_tried(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(ConfigError) as caught:
        await world.server({}, home=world.nothing)
    assert (
        "credentials: none found: no --kubeconfig, KUBECONFIG is not set, not in a pod, "
        f"no {world.nothing}/.kube/config"
    ) == str(caught.value)
    with pytest.raises(ConfigError, match=r"^KUBECONFIG: no such file: .*nothing$"):
        await world.server({"KUBECONFIG": str(world.nothing), **POD})
    with pytest.raises(ConfigError, match="No such file"):
        await connect(world.nothing)  # at once, not at the first request


@pytest.mark.parametrize(
    ("context", "environ", "namespace"), [(None, {}, "default"), ("other", {}, "team"), (None, POD, "own")]
)
async def test_the_namespace_is_that_of_the_context_or_of_the_pod(
    tmp_path: Path, context: str | None, environ: dict[str, str], namespace: str
) -> None:
    world = World(tmp_path)
    transport = await connect(context=context, environ=environ, home=world.home, service_account=world.pod)
    async with transport:
        assert namespace == await default_namespace(transport)
