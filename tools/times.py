"""Print what the last `make test TIMES=1` took: parts, shared fixtures and the slowest tests.

Markdown, as in `docs/testing.md`: seconds, and seconds of CPU with all processes that were started.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SLOWEST = 50


def _table(title: str, rows: Iterable[dict[str, Any]]) -> None:
    print(f"\n| {title} | seconds | CPU |\n|---|--:|--:|")
    for row in rows:
        print(f"| `{row['name']}` | {row['seconds']:.1f} | {row['cpu']:.1f} |")


def main(folder: Path) -> None:
    """Read every file of `folder` that `tests/times.py` wrote."""
    rows = [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.open()]
    by_kind = {
        kind: sorted((row for row in rows if row["what"] == kind), key=lambda row: -row["seconds"])
        for kind in ("part", "fixture", "test")
    }
    total = {key: sum(row[key] for row in by_kind["part"]) for key in ("seconds", "cpu")}
    _table("part", [*by_kind["part"], {"name": "all parts", **total}])
    _table("fixture of several tests", [row for row in by_kind["fixture"] if row["seconds"] >= 1])
    _table(f"test, the {SLOWEST} slowest of {len(by_kind['test'])}", by_kind["test"][:SLOWEST])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
