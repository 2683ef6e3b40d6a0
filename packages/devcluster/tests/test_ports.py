import socket
from pathlib import Path

from devcluster.layout import free_ports


def test_free_ports_are_different_and_nobody_listens_on_them() -> None:
    ports = free_ports(5)
    assert 5 == len(set(ports))
    for port in ports:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


def test_free_ports_lie_below_those_of_outgoing_connections() -> None:
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert all(port < int(outgoing[0]) for port in free_ports(20))


def test_reserved_ports_are_not_chosen() -> None:
    all_but_few = set(range(65536)) - set(range(20_000, 20_500))
    assert all(port < 20_500 for port in free_ports(3, reserved=all_but_few))
