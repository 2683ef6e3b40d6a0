"""Kubeconfig files: which one wins, what a path is relative to, and the message about a bad one."""

import asyncio
import base64
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from blockbuster import blockbuster_ctx

from kube_runtime.client.client import Client
from kube_runtime.client.http import AiohttpTransport, ClientConfig
from kube_runtime.client.kubeconfig import Kubeconfig, Overrides
from kube_runtime.errors import ConfigError
from scripted.server import an_authority, server_tls, serving, who_calls

SERVER = "https://api.example:6443"


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    with blockbuster_ctx("kube_runtime"):
        yield


def a_config(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "a"
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


async def loaded(*paths: Path, context: str | None = None) -> ClientConfig:
    return await Kubeconfig(paths, context).config()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "t\n"}, "Bearer t"),
        ({"username": "u", "password": "p"}, f"Basic {base64.b64encode(b'u:p').decode()}"),
    ],
)
async def test_a_token_or_a_password_is_presented(tmp_path: Path, user: dict[str, str], header: str) -> None:
    config = await loaded(write(tmp_path / "config", a_config(user=user)))
    assert (SERVER, {"Authorization": header}) == (config.server, config.headers)
    assert (None, None) == (config.proxy, config.tls_server_name)
    assert header not in repr(config)


async def test_server_names_and_proxy_are_those_of_the_file(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://proxy:3128", "tls-server-name": "kubernetes"}
    file = write(tmp_path / "config", a_config({"server": "http://api.example/prefix/", **cluster}))
    expected = ClientConfig("http://api.example/prefix", {}, None, "kubernetes", "http://proxy:3128")
    assert expected == await loaded(file)


async def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    content = a_config()
    content["contexts"][0]["context"]["user"] = ""
    config = await loaded(write(tmp_path / "config", content))
    assert {} == config.headers
    assert config.tls is not None


async def test_the_first_file_of_a_list_wins(tmp_path: Path) -> None:
    one = a_config({"server": "https://one"}, {"token": "one"})
    two = a_config({"server": "https://two"}, {"token": "two"})
    two["contexts"].append({"name": "other", "context": {"cluster": "b", "user": "a"}})
    two["clusters"].append({"name": "b", "cluster": {"server": "https://b"}})
    two["current-context"] = "other"
    files = write(tmp_path / "1", one), write(tmp_path / "2", two)
    config = await loaded(*files)
    assert ("https://one", "Bearer one") == (config.server, config.headers["Authorization"])
    config = await loaded(*files, context="other")
    assert ("https://b", "Bearer one") == (config.server, config.headers["Authorization"])


async def test_a_chosen_cluster_and_user_replace_those_of_the_context(tmp_path: Path) -> None:
    other = a_config({"server": "https://other:6443"}, {"token": "other"}, "other")
    paths = [write(tmp_path / "a", a_config(user={"token": "a"})), write(tmp_path / "b", other)]
    configs = [
        await Kubeconfig(paths, None, overrides).config()
        for overrides in (Overrides(cluster="other"), Overrides(user="other"), Overrides("other", "other"))
    ]
    assert ["https://other:6443", SERVER, "https://other:6443"] == [config.server for config in configs]
    tokens = [config.headers["Authorization"] for config in configs]
    assert ["Bearer a", "Bearer other", "Bearer other"] == tokens
    with pytest.raises(ConfigError, match="there is no user 'nobody'; known: a, other"):
        await Kubeconfig(paths, None, Overrides(user="nobody")).config()
    alone = write(tmp_path / "alone", without(a_config(user={"token": "a"}), "current-context"))
    assert SERVER == (await Kubeconfig([alone], None, Overrides("a", "a")).config()).server


async def test_a_later_file_may_name_the_current_context(tmp_path: Path) -> None:
    first = a_config({"server": "https://one"})
    del first["current-context"]
    files = write(tmp_path / "1", first), write(tmp_path / "2", {"current-context": "a"})
    assert "https://one" == (await loaded(*files)).server


async def test_each_path_starts_at_the_file_it_stands_in(tmp_path: Path) -> None:
    authority = an_authority(tmp_path / "clusters")
    (tmp_path / "clusters" / "ca.crt").write_bytes(authority.pem)
    pair = an_authority(tmp_path / "users" / "keys").issue("alice")
    cluster = a_config({"certificate-authority": "ca.crt"})
    del cluster["users"]
    keys = {"client-certificate": f"keys/{pair.certificate.name}", "client-key": f"keys/{pair.key.name}"}
    user = {"users": a_config(user=keys)["users"]}
    config = await loaded(
        write(tmp_path / "clusters" / "config", cluster), write(tmp_path / "users" / "config", user)
    )
    assert config.tls is not None
    assert 1 == len(config.tls.get_ca_certs())


@pytest.mark.parametrize("inline", [True, False])
async def test_a_client_certificate_reaches_the_server(tmp_path: Path, inline: bool) -> None:
    authority = an_authority(tmp_path)
    pair = authority.issue("alice")
    files = {
        "certificate-authority": authority.file,
        "client-certificate": pair.certificate,
        "client-key": pair.key,
    }
    if inline:
        parts = {f"{name}-data": base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    else:
        parts = {name: str(path) for name, path in files.items()}
    ours = {name: part for name, part in parts.items() if name.startswith("client")}
    trust = {name: part for name, part in parts.items() if not name.startswith("client")}
    tls = server_tls(authority)
    config = tmp_path / "config"
    async with serving(who_calls, tls) as url:
        await asyncio.to_thread(write, config, a_config({"server": url, **trust}, ours))
        async with AiohttpTransport(Kubeconfig([config])) as transport:
            assert {"commonName": "alice"} == await Client(transport).get_json("x")


async def test_insecure_means_unverified(tmp_path: Path) -> None:
    tls = server_tls(an_authority(tmp_path))

    async def hello(request: web.Request) -> web.Response:
        return web.json_response({})

    config = tmp_path / "config"
    async with serving(hello, tls) as url:
        cluster = {"server": url, "insecure-skip-tls-verify": True}
        await asyncio.to_thread(write, config, a_config(cluster))
        async with AiohttpTransport(Kubeconfig([config])) as transport:
            assert {} == await Client(transport).get_json("x")


async def test_a_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = write(tmp_path / "token", "one\n")
    user = {"token": "never", "tokenFile": "token"}
    credentials = Kubeconfig([write(tmp_path / "config", a_config(user=user))])
    before = await credentials.config()
    assert {"Authorization": "Bearer one"} == before.headers
    write(token, "two\n")
    assert before == await credentials.config()  # not for every request
    await credentials.refresh()
    after = await credentials.config()
    assert {"Authorization": "Bearer two"} == after.headers
    assert before.tls is after.tls  # the same material: connections live on


async def test_replaced_certificates_are_taken_up(tmp_path: Path) -> None:
    file = an_authority(tmp_path / "one").file
    config = write(tmp_path / "config", a_config({"certificate-authority": str(file)}))
    credentials = Kubeconfig([config])
    before = await credentials.config()
    file.write_bytes(an_authority(tmp_path / "two").pem)
    await credentials.refresh()
    assert before.tls is not (await credentials.config()).tls


def without(content: dict[str, Any], part: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != part}


BAD: dict[str, tuple[Any, str]] = {
    "empty": ("", "the file is empty"),
    "not YAML": ("a: b\nc: d: e\n", "not YAML: line 2, column 5: "),
    "binary": ("\x00\x01", "not YAML"),
    "not a mapping": ("[1]", "not a kubeconfig: Expected `object`, got `array`"),
    "wrong type": ({"users": {"a": {}}}, "not a kubeconfig: .*users"),
    "no name": ({"users": [{"user": {}}]}, "missing required field `name`"),
    "no current context": (without(a_config(), "current-context"), "no current-context is set"),
    "unknown context": ({**a_config(), "current-context": "b"}, "no context 'b'; known: a"),
    "unknown cluster": (without(a_config(), "clusters"), "no cluster 'a'; known: none"),
    "unknown user": (without(a_config(), "users"), "no user 'a'; known: none"),
    "no server": (a_config({"server": None}), "server '' is not an http or https URL"),
    "odd server": (a_config({"server": "api.example"}), "server 'api.example' is not"),
    "odd proxy": (a_config({"proxy-url": "socks5://p:1"}), "only http and https are supported"),
    "no proxy host": (a_config({"proxy-url": "http://"}), "only http and https are supported"),
    "name in server": (a_config({"server": "https://u@h"}), "put them under users"),
    "odd port": (a_config({"server": "https://h:x"}), "is not an http or https URL"),
    "odd host": (a_config({"server": "https://[::1"}), "is not an http or https URL"),
    "missing authority": (a_config({"certificate-authority": "nix"}), "certificate-authority .*nix"),
    "missing certificate": (a_config(user={"client-certificate": "nix"}), "client-certificate .*nix"),
    "missing token": (a_config(user={"tokenFile": "nix"}), "tokenFile .*nix: No such file"),
    "not base64": (a_config({"certificate-authority-data": "x"}), "data is not base64"),
    "not PEM": (a_config({"certificate-authority-data": "eHh4"}), "certificate authority"),
    "not a token": (a_config(user={"token": "a\nb"}), "characters that no token has"),
    "unknown provider": (
        a_config(user={"auth-provider": {"name": "azure"}}),
        "login with azure gave no token; use an exec plugin",
    ),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_kubeconfig_is_one_clear_line(tmp_path: Path, case: str) -> None:
    content, words = BAD[case]
    file = write(tmp_path / "config", content)
    with pytest.raises(ConfigError, match=words) as caught:
        await loaded(file)
    assert str(file) == caught.value.source
    assert "\n" not in str(caught.value)


async def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        await loaded(tmp_path / "nix")
    with pytest.raises(ConfigError, match="Is a directory"):
        await loaded(tmp_path)


SECRETS = (
    "users:\n- name: a\n  user:\n    token: hunter2 : x\n",
    "users: [{name: a, user: {token: 'hunter2}}]\n",
    "users: [{name: a, user: {token: hunter2\x01}}]\n",
    "token: *hunter2\n",
    "token: !hunter2 x\n",
    "token: !it's%20hunter2 x\n",
    "[" * 5000 + "hunter2",
    a_config({"proxy-url": "socks5://u:hunter2@p:1"}),
    a_config({"proxy-url": "u:hunter2@p"}),
    a_config({"proxy-url": "http://u:hunter2@p:x"}),
    a_config({"server": "https://u:hunter2@h"}),
    a_config({"server": "https://u:hunter2@h:x"}),
    a_config({"server": "ftp://u:hun//hunter2@h"}),
    a_config(user={"token": ["hunter2"]}),
    a_config(user={"token": "hunter2\n\nx"}),
)


@pytest.mark.parametrize("content", SECRETS, ids=range(len(SECRETS)))
async def test_an_error_line_has_no_secret(tmp_path: Path, content: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        await loaded(write(tmp_path / "config", content))
    told = "".join(traceback.format_exception(caught.value))
    lines = [line for line in told.splitlines() if not line.startswith("    ")]  # but source code
    assert "hunter" not in "\n".join(lines)
