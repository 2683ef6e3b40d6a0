"""Requests to the API server, counted in its audit log."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OPERATOR = "dynamo-operator/"
_READS = frozenset(("get", "list", "watch"))
_REVIEWS = frozenset(("selfsubjectreviews", "selfsubjectaccessreviews", "subjectaccessreviews"))
"""Kinds that are created but not stored."""


@dataclass(slots=True)
class Requests:
    """Requests of one client, without lists, watches and Leases; `server_seconds` is their total duration."""

    count: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    server_seconds: float = 0.0

    @property
    def total(self) -> int:
        """The number of requests."""
        return self.count.total()

    @property
    def writes(self) -> int:
        """The number of writes."""
        writing = ((verb, kind) for verb, kind in self.count if verb not in _READS)
        return sum(self.count[verb, kind] for verb, kind in writing if kind not in _REVIEWS)

    @property
    def events(self) -> int:
        """The number of writes of Events."""
        return sum(count for (_, kind), count in self.count.items() if kind == "events")


def now() -> str:
    """The current time in the format of the audit log."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def requests(log: Path, *, since: str, agent: str = OPERATOR) -> Requests:
    """The requests of the client with that user agent since then."""
    counted = Requests()
    for entry in _entries(log, since, agent):
        ref = entry.get("objectRef", {})
        parts = (ref.get("resource", ""), ref.get("subresource", ""))
        kind = "/".join(part for part in parts if part)
        if entry["verb"] in ("list", "watch") or kind == "leases":
            continue
        counted.count[entry["verb"], kind] += 1
        counted.server_seconds += _time(entry["stageTimestamp"]) - _time(
            entry["requestReceivedTimestamp"]
        )
    return counted


def _entries(log: Path, since: str, agent: str) -> Iterator[dict[str, Any]]:
    # The API server rotates the file at 100 MB and keeps two old ones.
    for file in sorted(log.parent.glob(f"{log.stem}*{log.suffix}")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # still being written
                entry = json.loads(line)
                is_ours = entry.get("userAgent", "").startswith(agent)
                if is_ours and entry["requestReceivedTimestamp"] >= since:
                    yield entry


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
