"""Requests, from the audit log of the API server: who asked for what, and how long it took."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OPERATOR = "dynamo-operator/"
_READS = frozenset(("get", "list", "watch"))
_QUESTIONS = frozenset(("selfsubjectreviews", "selfsubjectaccessreviews", "subjectaccessreviews"))
"""Kinds that are created only to be answered; nothing is stored."""


@dataclass(slots=True)
class Requests:
    """Requests of one client. `server_seconds` is how long the API server had them, summed up."""

    count: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    server_seconds: float = 0.0

    @property
    def total(self) -> int:
        """All of them; lists, watches and leases are not counted."""
        return self.count.total()

    @property
    def writes(self) -> int:
        """Those that write."""
        writing = ((verb, kind) for verb, kind in self.count if verb not in _READS)
        return sum(self.count[verb, kind] for verb, kind in writing if kind not in _QUESTIONS)

    @property
    def events(self) -> int:
        """Those that write Events."""
        return sum(count for (_, kind), count in self.count.items() if kind == "events")


def now() -> str:
    """A moment to count from, as the audit log writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def requests(log: Path, *, since: str, agent: str = OPERATOR) -> Requests:
    """What the client with that user agent has asked for since then."""
    asked = Requests()
    for entry in _entries(log, since, agent):
        about = entry.get("objectRef", {})
        parts = (about.get("resource", ""), about.get("subresource", ""))
        kind = "/".join(part for part in parts if part)
        if entry["verb"] in ("list", "watch") or kind == "leases":
            continue
        asked.count[entry["verb"], kind] += 1
        asked.server_seconds += _time(entry["stageTimestamp"]) - _time(
            entry["requestReceivedTimestamp"]
        )
    return asked


def _entries(log: Path, since: str, agent: str) -> Iterator[dict[str, Any]]:
    # The API server begins a new file at 100 MB and keeps two old ones.
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
