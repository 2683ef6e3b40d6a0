"""Logins by exec plugins and by OIDC."""

import asyncio
import base64
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from blockbuster import blockbuster_ctx

from kube_runtime.client import kubeconfig as login
from kube_runtime.client.client import Client
from kube_runtime.client.http import AiohttpTransport
from kube_runtime.client.kubeconfig import Kubeconfig
from kube_runtime.errors import ConfigError
from scripted.server import an_authority, server_tls, serving, who_calls

PLUGIN = """\
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
with open(os.path.join(folder, "answer.py")) as file:
    exec(file.read())
"""

ANSWER = """\
import datetime
number = sum(1 for _ in open(os.path.join(folder, "calls")))
status = {"token": f"token-%d" % number}
seconds = os.environ.get("LIFETIME_SECONDS")
if seconds:
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=float(seconds))
    status["expirationTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
version = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["apiVersion"]
print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))
"""

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    with blockbuster_ctx("kube_runtime"):
        yield


def a_plugin(folder: Path, answer: str = ANSWER, **more: Any) -> dict[str, Any]:
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "answer.py").write_text(answer)
    script = str(folder / "plugin.py")
    return {"exec": {"apiVersion": V1, "command": sys.executable, "args": [script], **more}}


def calls(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def write_config(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    content = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://api.example", **(cluster or {})}}],
        "users": [{"name": "a", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


async def token_of(credentials: Kubeconfig) -> str:
    return (await credentials.config()).headers["Authorization"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_plugin_is_run_once_for_a_token_that_does_not_expire(tmp_path: Path, version: str) -> None:
    user = a_plugin(tmp_path)
    user["exec"]["apiVersion"] = f"client.authentication.k8s.io/{version}"
    credentials = Kubeconfig([write_config(tmp_path, user)])
    with pytest.raises(TimeoutError):  # a request that gives up meanwhile loses no login
        await asyncio.wait_for(token_of(credentials), 0.001)
    assert {"Bearer token-1"} == set(await asyncio.gather(*(token_of(credentials) for _ in range(10))))
    assert "Bearer token-1" == await token_of(credentials)
    assert [f"client.authentication.k8s.io/{version}"] == [call["apiVersion"] for call in calls(tmp_path)]
    await credentials.refresh()
    assert "Bearer token-2" == await token_of(credentials)


async def test_an_expired_token_is_renewed_before_the_request(tmp_path: Path) -> None:
    user = a_plugin(tmp_path, env=[{"name": "LIFETIME_SECONDS", "value": "0.5"}])
    credentials = Kubeconfig([write_config(tmp_path, user)])
    started = time.monotonic()
    first = await token_of(credentials)
    while await token_of(credentials) == first:
        assert time.monotonic() - started < 60
        await asyncio.sleep(0.05)
    assert "Bearer token-2" == await token_of(credentials)


async def test_a_plugin_gets_the_cluster_info_if_it_requests_it(tmp_path: Path) -> None:
    authority = an_authority(tmp_path / "authority")
    cluster = {
        "certificate-authority": str(authority.file),
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "it"}}],
    }
    user = a_plugin(tmp_path, provideClusterInfo=True)
    await token_of(Kubeconfig([write_config(tmp_path, user, cluster)]))
    told = calls(tmp_path)[0]["spec"]["cluster"]
    assert "https://api.example" == told["server"]
    assert "kubernetes" == told["tls-server-name"]
    assert authority.pem == base64.b64decode(told["certificate-authority-data"])
    assert {"audience": "it"} == told["config"]


async def test_a_plugin_may_stand_beside_the_kubeconfig(tmp_path: Path) -> None:
    user = a_plugin(tmp_path)
    program = tmp_path / "bin" / "login"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PLUGIN}")
    program.chmod(0o700)
    (tmp_path / "answer.py").rename(program.parent / "answer.py")
    user["exec"].update({"command": "bin/login", "args": []})
    assert "Bearer token-1" == await token_of(Kubeconfig([write_config(tmp_path, user)]))


async def test_a_plugin_may_hand_out_a_certificate(tmp_path: Path) -> None:
    authority = an_authority(tmp_path / "authority")
    for name in ("alice", "bob"):
        authority.issue(name)
    answer = f"""
number = sum(1 for _ in open(os.path.join(folder, "calls")))
name = ["alice", "bob"][number - 1]
read = lambda kind: open(os.path.join({str(authority.folder)!r}, name + kind)).read()
status = {{"clientCertificateData": read(".crt"), "clientKeyData": read(".key")}}
print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential", "status": status}}))
"""
    user = a_plugin(tmp_path, answer)
    trust = {"certificate-authority": str(authority.file)}
    tls = server_tls(authority)
    async with serving(who_calls, tls) as url:
        config = await asyncio.to_thread(write_config, tmp_path, user, {"server": url, **trust})
        async with AiohttpTransport(Kubeconfig([config])) as transport:
            client = Client(transport)
            assert {"commonName": "alice"} == await client.get_json("x")
            await transport.credentials.refresh()
            assert {"commonName": "bob"} == await client.get_json("x")  # on a new connection


BAD_PLUGINS = {
    "sys.exit('no ticket\\nlog in first')": "process returned 1. no ticket log in first",
    "print('hello')": "unexpected output: JSON is malformed",
    "print('{}')": "missing required field `apiVersion`",
    'print(\'{"apiVersion":"v2","kind":"x","status":{}}\')': "answered with apiVersion 'v2'",
    f'print(\'{{"apiVersion":"{V1}","kind":"x","status":{{}}}}\')': "neither token nor",
    f'print(\'{{"apiVersion":"{V1}","kind":"x","status":{{"token":1}}}}\')': "token",
    f'print(\'{{"apiVersion":"{V1}","kind":"x","status":'
    '{"token":"t","expirationTimestamp":"soon"}}\')': "RFC3339|datetime",
}


@pytest.mark.parametrize("answer", BAD_PLUGINS)
async def test_a_plugin_that_fails_is_one_clear_line(tmp_path: Path, answer: str) -> None:
    config = write_config(tmp_path, a_plugin(tmp_path, answer))
    with pytest.raises(ConfigError, match=BAD_PLUGINS[answer]) as caught:
        await token_of(Kubeconfig([config]))
    assert str(caught.value).startswith(f"{config}: exec plugin {sys.executable}: ")
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "EXEC_SECONDS", 0.5)
    config = write_config(tmp_path, a_plugin(tmp_path, "time.sleep(600)"))
    with pytest.raises(ConfigError, match=r"exec plugin .*: no answer within 0\.5 s, ended"):
        await token_of(Kubeconfig([config]))


async def test_a_plugin_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": V1, "command": "no-such-plugin", "installHint": "Install it."}}
    with pytest.raises(ConfigError, match=r"exec plugin no-such-plugin: .*No such file.* Install it\."):
        await token_of(Kubeconfig([write_config(tmp_path, user)]))


async def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kube_runtime.client.login_provider", raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    config = write_config(tmp_path, a_plugin(tmp_path))
    assert "Bearer token-1" == await token_of(Kubeconfig([config]))  # plugins do without it
    config = write_config(tmp_path, an_oidc_user("https://issuer.example", a_jwt(3600)))
    with pytest.raises(ConfigError, match=r"pip install './packages/kube-runtime\[login-providers\]'"):
        await token_of(Kubeconfig([config]))


def a_jwt(lifetime_seconds: float) -> str:
    claims = json.dumps({"exp": int(time.time() + lifetime_seconds)}).encode()
    part = base64.urlsafe_b64encode(claims).decode().rstrip("=")
    return f"e30.{part}.c2ln"


class Issuer:
    """An OIDC issuer that renews tokens, each refresh token once."""

    def __init__(self) -> None:
        self.number = 1
        self.url = ""
        self.fresh = a_jwt(3600)

    async def handle(self, request: web.Request) -> web.Response:
        if request.path.endswith("openid-configuration"):
            return web.json_response({"token_endpoint": f"{self.url}/token"})
        form = await request.post()
        if form["refresh_token"] != f"refresh-{self.number}":
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.number += 1
        return web.json_response(
            {
                "id_token": self.fresh,
                "refresh_token": f"refresh-{self.number}",
                "access_token": "x",
                "token_type": "bearer",
            }
        )


def an_oidc_user(issuer: str, token: str, **more: str) -> dict[str, Any]:
    config = {"client-id": "us", "idp-issuer-url": issuer, "id-token": token, **more}
    return {"auth-provider": {"name": "oidc", "config": config}}


async def test_an_expired_oidc_token_is_renewed_and_kept(tmp_path: Path) -> None:
    authority = an_authority(tmp_path / "authority")
    tls = server_tls(authority)
    issuer = Issuer()
    async with serving(issuer.handle, tls) as url:
        issuer.url = url
        user = an_oidc_user(
            url,
            a_jwt(-60),
            **{"refresh-token": "refresh-1", "idp-certificate-authority": str(authority.file)},
        )
        config = await asyncio.to_thread(write_config, tmp_path, user)
        assert f"Bearer {issuer.fresh}" == await token_of(Kubeconfig([config]))
        # Another start finds the renewed tokens: the old refresh token is used up.
        assert f"Bearer {issuer.fresh}" == await token_of(Kubeconfig([config]))
    stored = yaml.safe_load(config.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (issuer.fresh, "refresh-2") == (stored["id-token"], stored["refresh-token"])
    assert "client-secret" not in stored
    assert 0o600 == config.stat().st_mode & 0o777


async def test_an_issuer_with_a_strange_certificate_never_sees_the_refresh_token(tmp_path: Path) -> None:
    tls = server_tls(an_authority(tmp_path / "authority"))
    issuer = Issuer()
    async with serving(issuer.handle, tls) as url:
        issuer.url = url
        user = an_oidc_user(url, a_jwt(-60), **{"refresh-token": "refresh-1"})
        config = await asyncio.to_thread(write_config, tmp_path, user)
        with pytest.raises(ConfigError, match=r"login with oidc: .*[Cc]ertificate"):
            await token_of(Kubeconfig([config]))
    assert 1 == issuer.number


async def test_an_oidc_login_that_has_run_out(tmp_path: Path) -> None:
    async def gone(request: web.Request) -> web.Response:
        return web.Response(status=404)

    authority = an_authority(tmp_path / "authority")
    tls = server_tls(authority)
    async with serving(gone, tls) as url:
        more = {"refresh-token": "r", "idp-certificate-authority": str(authority.file)}
        config = await asyncio.to_thread(write_config, tmp_path, an_oidc_user(url, a_jwt(-60), **more))
        with pytest.raises(ConfigError, match="login with oidc"):
            await token_of(Kubeconfig([config]))
