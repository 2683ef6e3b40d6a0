"""What tests and fixtures cost: `make test TIMES=1` records it and prints a table (`tools/times.py`).

Seconds of CPU are those of this process and of all that it started: API servers and operators too, for as
long as a test or fixture lasts. What its neighbours start in that time counts as well.
"""

import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Seconds of CPU of this process and its descendants, with those that have ended and were waited for."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # the name, in brackets, may contain blanks
            values = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        pid = int(folder.name)
        children.setdefault(int(values[1]), []).append(pid)
        ticks[pid] = sum(map(int, values[11:15]))
    total, left = 0, [os.getpid()]
    while left:
        pid = left.pop()
        total += ticks.get(pid, 0)
        left += children.get(pid, [])
    return total / _TICKS_PER_SECOND


@dataclass(slots=True, eq=False)  # pytest hashes its plugins
class Times:
    """A pytest plugin that writes a line of JSON for each test, each shared fixture, and the whole."""

    file: Path
    _rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @contextmanager
    def _timed(self, what: str, name: str) -> Iterator[None]:
        start, cpu = time.monotonic(), cpu_seconds()
        yield
        seconds = round(time.monotonic() - start, 3)
        cost = round(cpu_seconds() - cpu, 2)
        self._rows.append({"what": what, "name": name, "seconds": seconds, "cpu": cost})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Time a test with its fixtures."""
        with self._timed("test", item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Time the start of a fixture that several tests share."""
        if fixturedef.scope == "function":
            return (yield)
        with self._timed("fixture", f"{fixturedef.baseid}::{fixturedef.argname}"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Write what was recorded."""
        result = yield
        whole = {"what": "part", "name": self.file.stem, "seconds": round(time.monotonic() - _STARTED, 3)}
        self._rows.append({**whole, "cpu": round(cpu_seconds(), 2)})
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(json.dumps(row) + "\n" for row in self._rows))
        return result


_STARTED = time.monotonic()
