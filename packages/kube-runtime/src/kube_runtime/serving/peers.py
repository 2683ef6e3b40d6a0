"""The client of a connection, known by its address only."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

_SITE_BITS: Final = 64
"""A client with one IPv6 address has the whole prefix of this length."""


def client_of(address: str | None) -> str:
    """The client behind an address: the address, or for IPv6 its prefix. "" means: not known."""
    try:
        found = ip_address((address or "").partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, _SITE_BITS), strict=False))
