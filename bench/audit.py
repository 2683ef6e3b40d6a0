"""Requests to the API server, counted in its audit log."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cluster.audit import entries, resource_of

_READS = frozenset(("get", "list", "watch"))
_REVIEWS = frozenset(("selfsubjectreviews", "selfsubjectaccessreviews", "subjectaccessreviews"))
"""Kinds that are created but not stored."""


@dataclass(slots=True)
class Requests:
    """The operator's requests, without lists, watches and Leases; `server_seconds` is their total time."""

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


def requests(log: Path, *, since: str) -> Requests:
    """The requests of the operator since then."""
    counted = Requests()
    for entry in entries(log, since=since):
        kind = resource_of(entry)
        if entry["verb"] in ("list", "watch") or kind == "leases":
            continue
        counted.count[entry["verb"], kind] += 1
        counted.server_seconds += _time(entry["stageTimestamp"]) - _time(entry["requestReceivedTimestamp"])
    return counted


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
