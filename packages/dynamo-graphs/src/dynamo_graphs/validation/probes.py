"""Probes: one handler each, and numbers that Kubernetes takes."""

from collections.abc import Iterator

from dynamo_graphs.validation import Problem, ProblemKind
from kube_runtime.kind import Fields

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NUMBERS = (
    "initialDelaySeconds",
    "periodSeconds",
    "timeoutSeconds",
    "successThreshold",
    "failureThreshold",
)
_MAX_PORT = 65535


def probe_problems(
    probe: Fields, path: str, *, may_lack_handler: bool = False
) -> Iterator[Problem]:
    """What the API server would refuse; `may_lack_handler` when this lies over a default."""
    given = [name for name in _HANDLERS if probe.get(name) is not None]
    if len(given) > 1:
        both = " and ".join(given)
        yield Problem(path, f"more than one handler: {both}")
    elif not given and not may_lack_handler:
        options = ", ".join(_HANDLERS)
        yield Problem(path, f"missing handler (expected one of {options})", ProblemKind.REQUIRED)
    for name in given:
        yield from _handler_problems(name, probe[name], f"{path}.{name}")
    for name in _NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield Problem(f"{path}.{name}", "must not be negative")
    if path.rpartition(".")[2] != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
        yield Problem(f"{path}.successThreshold", "must be 1 for a liveness or startup probe")


def _handler_problems(name: str, handler: Fields, path: str) -> Iterator[Problem]:
    if name == "exec":
        if not handler.get("command"):
            yield Problem(f"{path}.command", "missing command", ProblemKind.REQUIRED)
        return
    port = handler.get("port")
    if port is None or port == "":
        yield Problem(f"{path}.port", "missing port", ProblemKind.REQUIRED)
    elif isinstance(port, bool) or not isinstance(port, int | str):
        yield Problem(f"{path}.port", "expected a port number or name")
    elif isinstance(port, int) and not 0 < port <= _MAX_PORT:
        yield Problem(f"{path}.port", f"must be between 1 and {_MAX_PORT}")
    elif isinstance(port, str) and not is_port_name(port):
        yield Problem(f"{path}.port", f'invalid port name "{port}"')


def is_port_name(text: str) -> bool:
    """Whether the text may name a container's port: at most 15 of `a-z 0-9 -`, with a letter."""
    fits = len(text) <= 15 and text == text.lower() and text.isascii()  # noqa: PLR2004  # RFC 6335
    plain = text.replace("-", "a").isalnum() and "--" not in text and text.strip("-") == text
    return fits and plain and not text.isdigit()
