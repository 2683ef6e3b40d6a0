"""Credentials on a real API server: certificates, tokens, a plugin, a pod's service account."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import yaml

from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect
from kube_runtime.errors import Unauthorized, Unreachable
from kube_runtime.types.kinds import SelfSubjectReview, question
from kube_runtime.types.meta import Object

if TYPE_CHECKING:
    from cluster.conftest import ControlPlane

pytestmark = pytest.mark.cluster


async def who_am_i(client: Client) -> str:
    review = await client.create(SelfSubjectReview, question(SelfSubjectReview.KIND, {}))
    return review.status.user_info.username


def with_user(control_plane: "ControlPlane", folder: Path, user: Object) -> Path:
    """The administrator's kubeconfig with another user's credentials."""
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    content["users"] = [{"name": each["name"], "user": user} for each in content["users"]]
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


async def test_the_kubeconfig_of_the_control_plane(control_plane: "ControlPlane") -> None:
    async with await connect(control_plane.kubeconfig) as transport:
        assert "admin" in await who_am_i(Client(transport))


async def test_a_plugin_that_hands_out_tokens(
    control_plane: "ControlPlane", namespace: str, tmp_path: Path
) -> None:
    token = control_plane.instance.token_for(namespace, "default")
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    script = tmp_path / "plugin.py"
    script.write_text(f"print({json.dumps(credential)!r})")
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
    }
    path = with_user(control_plane, tmp_path, {"exec": plugin})
    async with await connect(path) as transport:
        expected = f"system:serviceaccount:{namespace}:default"
        assert expected == await who_am_i(Client(transport))


async def test_a_pod_with_its_service_account(
    control_plane: "ControlPlane", namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("not-a-token")
    (tmp_path / "ca.crt").write_bytes(control_plane.ca.read_bytes())
    url = urlsplit(control_plane.server)
    environ = {"KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port)}
    async with await connect(environ=environ, service_account=tmp_path) as transport:
        client = Client(transport)
        with pytest.raises(Unauthorized):
            await client.get_json("version")
        # The kubelet replaces the file; the next refusal makes us read it.
        (tmp_path / "token").write_text(control_plane.instance.token_for(namespace, "default"))
        expected = f"system:serviceaccount:{namespace}:default"
        assert expected == await who_am_i(client)


async def test_an_authority_that_is_not_the_servers(control_plane: "ControlPlane", tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    for each in content["clusters"]:
        each["cluster"].pop("certificate-authority", None)
        each["cluster"].pop("certificate-authority-data", None)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    async with await connect(path) as transport:
        with pytest.raises(Unreachable, match=r"the certificate of .* is not trusted"):
            await Client(transport).get_json("version")
