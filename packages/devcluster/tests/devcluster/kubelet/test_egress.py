"""The proxy of the API server: what it connects, and that everything else is refused."""

import asyncio
import json
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.components import POD_NETWORK
from devcluster.kubelet import egress

LOCAL = IPv4Network("10.140.7.0/24")
SIMULATED = IPv4Network(POD_NETWORK)


async def kubelet() -> egress.Streams:
    raise ConnectionRefusedError(111, "the kubelet")


def route(host: str, port: int) -> egress.Dial | None:
    return egress.routed(host, port, local=LOCAL, simulated=SIMULATED, kubelet=kubelet, kubelet_port=10250)


async def answered(socket: Path, request: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def through_the_proxy(folder: Path, request: bytes) -> bytes:
    server = await egress.serve(egress.private_socket(folder / "egress.sock"), route)
    async with server:
        return await answered(folder / "egress.sock", request)


@pytest.mark.parametrize(
    "target",
    [
        "10.0.0.1:80",
        "192.168.1.1:10250",
        "127.0.0.1:22",
        "8.8.8.8:443",
        "[::1]:80",
        "example.com:443",
        "gpu-0:80",
    ],
)
def test_an_address_that_is_no_pod_is_refused(tmp_path: Path, target: str) -> None:
    answer = asyncio.run(through_the_proxy(tmp_path, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()))
    assert answer.startswith(b"HTTP/1.1 403 ")


@given(st.ip_addresses(v=4), st.integers(1, 65535))
def test_only_this_machine_is_dialled(address: IPv4Address, port: int) -> None:
    if address in LOCAL:
        assert IPv4Address(egress.loopback(address)).is_loopback
    elif address in SIMULATED:
        assert route(str(address), port) is None
    else:
        with pytest.raises(egress.Refused):
            route(str(address), port)


def test_the_name_of_a_node_leads_to_the_kubelet(tmp_path: Path) -> None:
    answer = asyncio.run(through_the_proxy(tmp_path, b"CONNECT gpu-1:10250 HTTP/1.1\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 502 the kubelet")


def test_a_simulated_pod_says_that_no_container_runs(tmp_path: Path) -> None:
    request = b"CONNECT 10.128.0.9:8000 HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = asyncio.run(through_the_proxy(tmp_path, request))
    _, _, http = answer.partition(b"\r\n\r\n")
    head, _, body = http.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["message"] == egress.SIMULATED


@given(st.sets(st.integers(20_000, 51_000), min_size=2, max_size=2))
def test_two_api_servers_of_a_machine_have_different_pods(ports: set[int]) -> None:
    one, other = (egress.subnet(port) for port in ports)
    assert not one.overlaps(other)
    assert not one.overlaps(SIMULATED)


def test_the_socket_is_for_this_user_only(tmp_path: Path) -> None:
    with egress.private_socket(tmp_path / "egress.sock"):
        assert (tmp_path / "egress.sock").stat().st_mode & 0o777 == 0o600
