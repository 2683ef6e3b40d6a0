"""The addresses that the operator connects to on behalf of tenants (docs/decisions/0031): public ones.

Each address is checked when its socket is created, so the address that was checked is the one that is
connected to, whatever the name server answers next.
"""

import errno
import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final

import aiohttp

from dynamo_legacy.settings import Network

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""Source: RFC 6052; the last four bytes are the IPv4 address that is connected to."""
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""Public IPv6 addresses. Source: RFC 4291, section 2.4, and IANA's registry."""
_TUNNELS: Final = tuple(map(ipaddress.ip_network, ("2002::/16", "2001::/32")))
"""6to4 and Teredo, which contain IPv4 addresses of others. Sources: RFC 3056, RFC 4380."""
_METADATA: Final = ipaddress.ip_address("168.63.129.16")
"""The metadata service with a public address. Source: the documentation of Azure."""


def is_public(address: str, cluster: Sequence[Network] = ()) -> bool:
    """Whether an address belongs to neither this machine, a private network, nor one of the cluster's."""
    try:
        ip = _connected_to(ipaddress.ip_address(address))
    except ValueError:
        return False  # the resolver accepts "127.1" and "2130706433" as addresses too
    if ip.version == 6 and ip not in _UNICAST:  # noqa: PLR2004
        return False
    if ip.is_multicast or not ip.is_global or ip == _METADATA:
        return False
    return not any(ip in network for network in (*_TUNNELS, *cluster))


def _connected_to(ip: _IPAddress) -> _IPAddress:
    """The IPv4 address that an IPv6 address stands for, else the address itself."""
    if not isinstance(ip, ipaddress.IPv6Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip


def public_socket(cluster: Sequence[Network]) -> Callable[[aiohttp.AddrInfoType], socket.socket]:
    """Create sockets for public addresses only; for others it raises PermissionError (EACCES)."""

    def opened(address: aiohttp.AddrInfoType) -> socket.socket:
        family, type_, protocol, _, (host, *_) = address
        if not is_public(str(host), cluster):
            raise PermissionError(
                errno.EACCES, "not a public address, and not in DYNAMO_KNOWN_REGISTRIES"
            )
        return socket.socket(family, type_, protocol)

    return opened
