"""Requests of the operator, from the audit log of the API server."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from cluster.world import PATIENCE_SECONDS

OPERATOR = "dynamo-operator/"
"""The beginning of the operator's user agent."""
_STREAMS = ("watch", "list")
_RECEIVED = '"requestReceivedTimestamp":"'


def now() -> str:
    """The current time in the format of the audit log, for `since`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def entries(log: Path, *, agent: str = OPERATOR, since: str = "") -> Iterator[dict[str, Any]]:
    """The entries about requests of clients with that user agent, oldest first."""
    # The API server rotates the file at 100 MB and keeps two old ones.
    for file in sorted(log.parent.glob(f"{log.stem}*{log.suffix}")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # the API server is still writing it
                # Few of them are asked for, so they are compared as text: there may be 100,000.
                if f'"userAgent":"{agent}' in line and line.rpartition(_RECEIVED)[2] >= since:
                    yield json.loads(line)


def resource_of(entry: dict[str, Any]) -> str:
    """The resource of a request, with its subresource if any."""
    ref = entry.get("objectRef", {})
    return "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))


class Call(NamedTuple):
    verb: str
    resource: str


@dataclass(frozen=True, slots=True)
class Audit:
    log: Path
    agent: str = OPERATOR

    def now(self) -> str:
        return now()

    def calls(self, *, namespace: str = "", since: str = "") -> Counter[Call]:
        """The requests by verb and resource, without lists, watches and Leases."""
        return Counter(
            Call(entry["verb"], resource_of(entry))
            for entry in entries(self.log, agent=self.agent, since=since)
            if namespace in ("", entry.get("objectRef", {}).get("namespace", ""))
            and entry["verb"] not in _STREAMS
            and resource_of(entry) != "leases"
        )

    def falls_silent(
        self, namespace: str, *, for_seconds: float = 3.0, within_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Wait until the operator sends no requests about a namespace for a while; fails with the calls."""
        deadline = time.monotonic() + within_seconds
        while True:
            since = now()
            time.sleep(for_seconds)
            calls = self.calls(namespace=namespace, since=since)
            if not calls:
                return
            assert time.monotonic() < deadline, calls
