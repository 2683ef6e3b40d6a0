"""Where a server listens, as Go programs write it."""

from typing import NamedTuple

from kube_runtime.errors import ConfigError

_OFF = "0"
_LARGEST_PORT = 65535


class Address(NamedTuple):
    """Where to listen. Host None means every interface; port 0 means any free one."""

    host: str | None
    port: int


def listen_address(source: str, text: str) -> Address | None:
    """The address in `:8080`, `127.0.0.1:8080` or `[::1]:8080`. None means off, written as `0`.

    Raises: ConfigError, with `source` as the setting to blame.
    """
    if text in {_OFF, ""}:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise ConfigError(source, f"expected HOST:PORT, :PORT or 0, got {text!r}")
    return Address(host.removeprefix("[").removesuffix("]") or None, int(port))
