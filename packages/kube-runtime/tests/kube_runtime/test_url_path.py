"""No name leads a request to another path: names are refused or quoted, and nothing decodes them again."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.client.client import Client
from kube_runtime.client.http import AiohttpTransport
from kube_runtime.errors import Invalid
from kube_runtime.types.kinds import ConfigMap, Node, RoleBinding
from kube_runtime.types.meta import Key, Kind
from kube_runtime.wire import path_of, proxied, url_path
from scripted.transport import Plain

OTHER = (
    "../../victim/configmaps/base",
    "..",
    ".",
    "",
    "a/../../b",
    "%2e%2e/%2e%2e/secrets",
    "..%2f..%2fsecrets",
    "base/status",
)
"""Names that lead to another object as text of a path."""

QUOTED = {
    "a?watch=true": "a%3Fwatch%3Dtrue",
    "a#b": "a%23b",
    "a b": "a%20b",
    "a\r\nHost: x": "a%0D%0AHost:%20x",
    "système": "syst%C3%A8me",
    "system:node": "system:node",
}
_QUOTED = re.compile(r"[\w.~:%-]+", re.ASCII)


@asynccontextmanager
async def listening(paths: list[str]) -> AsyncIterator[Client]:
    """A client of a server that notes the path and query of each request as it was sent."""

    async def note(request: web.BaseRequest) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response({"metadata": {"name": "a", "uid": "1"}})

    server = web.ServerRunner(web.Server(note))  # a route does not match a line break
    await server.setup()
    try:
        await web.TCPSite(server, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{server.addresses[0][1]}/behind"
        async with AiohttpTransport(Plain(url)) as transport:
            yield Client(transport)
    finally:
        await server.cleanup()


CALLS: dict[str, Callable[[Client, Key], Awaitable[object]]] = {
    "get": lambda client, key: client.get(ConfigMap, key),
    "get_raw": lambda client, key: client.get_raw(ConfigMap.KIND, key),
    "get_json": lambda client, key: client.get_json("apis", key.name),
    "merge_patch": lambda client, key: client.merge_patch(ConfigMap, key, {}),
    "delete": lambda client, key: client.delete(ConfigMap, key, uid="1"),
    "apply": lambda client, key: client.apply(
        ConfigMap, {"metadata": {"name": key.name, "namespace": key.namespace}}, force=True
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", OTHER)
async def test_such_a_name_is_refused_without_a_request(call: str, name: str) -> None:
    paths: list[str] = []
    async with listening(paths) as client:
        with pytest.raises(Invalid, match="invalid name"):
            await CALLS[call](client, Key("lab", name))
    assert [] == paths


@pytest.mark.parametrize("namespace", [name for name in OTHER if name])
async def test_such_a_namespace_is_refused_without_a_request(namespace: str) -> None:
    paths: list[str] = []
    async with listening(paths) as client:
        with pytest.raises(Invalid, match="invalid name"):
            await client.get(ConfigMap, Key(namespace, "a"))
        with pytest.raises(Invalid, match="invalid name"):
            await anext(client.pages(ConfigMap, namespace=namespace))
    assert [] == paths


@pytest.mark.parametrize(("name", "quoted"), QUOTED.items())
async def test_other_characters_are_sent_quoted(name: str, quoted: str) -> None:
    paths: list[str] = []
    async with listening(paths) as client:
        await client.get(ConfigMap, Key("lab", name))
    assert [f"/behind/api/v1/namespaces/lab/configmaps/{quoted}"] == paths


@given(st.lists(st.text(), min_size=1))
def test_a_segment_is_still_one_segment(segments: list[str]) -> None:
    try:
        path = url_path(*segments)
    except Invalid:
        return
    assert len(segments) == path.count("/")
    assert all(_QUOTED.fullmatch(part) for part in path[1:].split("/"))


def test_collections_and_objects() -> None:
    custom = Kind("example.com", "v1", "Thing", "things")
    assert "/apis/example.com/v1/things" == path_of(custom)
    assert "/apis/example.com/v1/namespaces/lab/things/a/status" == path_of(custom, "lab", "a", "status")
    assert "/api/v1/nodes/a" == path_of(Node.KIND, "", "a")
    assert path_of(RoleBinding.KIND, "lab", "a:b").endswith("/namespaces/lab/rolebindings/a:b")
    with pytest.raises(Invalid):
        path_of(custom, "", "a")  # an object is in a namespace


def test_what_is_behind_a_proxy_stays_there() -> None:
    proxy = url_path("api", "v1", "namespaces", "lab", "services", "http:a:80", "proxy")
    assert f"{proxy}/v1/x%20y?q=a/../b%23" == proxied(proxy, "v1/x y?q=a/../b#")
    for target in ("/../secrets", "a/%2E%2e/b", "a/..%2fb"):
        with pytest.raises(Invalid, match="invalid path"):
            proxied(proxy, target)
