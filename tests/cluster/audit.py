"""Requests that reached the API server, from its audit log."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cluster.world import PATIENCE_SECONDS

_STREAMS = ("watch", "list")


class Call(NamedTuple):
    """What a request was for."""

    verb: str
    resource: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit log of one API server."""

    log: Path
    agent: str = "dynamo-operator/"

    def now(self) -> str:
        """A moment to count from."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def calls(self, *, namespace: str = "", since: str = "") -> Counter[Call]:
        """The requests of the operator, by verb and resource, without the watches that it keeps open."""
        return Counter(
            Call(verb, resource)
            for verb, resource, where in self._requests(since)
            if namespace in ("", where) and verb not in _STREAMS and resource != "leases"
        )

    def falls_silent(
        self,
        namespace: str,
        *,
        for_seconds: float = 3.0,
        within_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Return when the operator has sent nothing about a namespace for a while; fails with the calls."""
        deadline = time.monotonic() + within_seconds
        while True:
            since = self.now()
            time.sleep(for_seconds)
            sent = self.calls(namespace=namespace, since=since)
            if not sent:
                return
            assert time.monotonic() < deadline, sent

    def _requests(self, since: str) -> Iterator[tuple[str, str, str]]:
        with self.log.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return  # the API server is still writing it
                entry = json.loads(line)
                is_ours = entry.get("userAgent", "").startswith(self.agent)
                if is_ours and entry["requestReceivedTimestamp"] >= since:
                    about = entry.get("objectRef", {})
                    parts = (about.get("resource", ""), about.get("subresource", ""))
                    yield entry["verb"], "/".join(filter(None, parts)), about.get("namespace", "")
