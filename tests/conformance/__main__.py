"""`make conformance`: agreement of our operator with the recorded one, per mode."""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conformance import newer, newer_play
from conformance.deviations import rows
from conformance.modes import EVERY_MODE
from conformance.recordings import every_case
from conformance.verdict import Result, Verdict, verdicts

NEWER = {f"newer-{mode}": mode for mode in newer.FACTS}


def main() -> int:
    """Play what is asked for, print the table, and return how many cases and rows are wrong."""
    arguments = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    modes = "modes to play, all by default; `legacy` and `newer` are each that begins with it"
    arguments.add_argument("modes", nargs="*", default=[*EVERY_MODE, *NEWER], help=modes)
    arguments.add_argument("--case", action="append", default=[], help="only this case")
    arguments.add_argument("--report", type=Path, help="write all, explained ones too")
    asked = arguments.parse_args()
    found: list[Verdict] = []
    results = "".join(f"{each:>26}" for each in Result)
    print(f"{'mode':16}{'cases':>6}{results}{'s':>6}")
    names = [name for name in (*EVERY_MODE, *NEWER) if {name, name.partition("-")[0]} & {*asked.modes}]
    for name in names:
        began = time.monotonic()
        judged = _played(name, asked.case)
        if asked.case and not judged:
            continue
        found += judged
        count = Counter(each.result for each in judged)
        counts = "".join(f"{count[each]:26}" for each in Result)
        print(f"{name:16}{len(judged):6}{counts}{time.monotonic() - began:6.0f}", flush=True)
    print(*_lines(found, explained=False), sep="\n")
    if asked.report:
        asked.report.write_text("\n".join(_lines(found, explained=True)), encoding="utf-8")
    wrong = sum(each.result is Result.DIFFERENT for each in found)
    return wrong if asked.case else wrong + _unused(found, {*names})


def _played(name: str, cases: list[str]) -> list[Verdict]:
    """The verdicts on those cases in a mode, or on all; none if it has none of them."""
    with tempfile.TemporaryDirectory() as folder:
        if name in NEWER:
            mode = NEWER[name]
            newer_cases = newer_play.played(mode, cases)
            seen = newer_play.seen(mode, newer_cases, Path(folder)) if newer_cases else {}
            return newer_play.verdicts(mode, newer_cases, seen)
        chosen = [each for each in every_case() if each.name in cases]
        chosen = [each for each in chosen if each.recorded(EVERY_MODE[name], 0)]
        if cases and not chosen:
            return []
        return [*verdicts(EVERY_MODE[name], Path(folder), chosen).values()]


def _lines(found: list[Verdict], *, explained: bool) -> Iterator[str]:
    """The differences of each case, each with the id of its row; `?` is an unintended one."""
    for each in found:
        shown = [line for line in each.differences if explained or line[2] is None]
        if shown or each.offline:
            yield f"\n{each.mode} {each.case}"
        for stage, difference, row in shown:
            yield f"  {row.id if row else '?':5} stage {stage}: {difference}"
        yield from (f"  render {line}" for line in each.offline)


def _unused(found: list[Verdict], names: set[str]) -> int:
    """How many rows of the played modes explain nothing, so that they should go; each is printed."""
    used = {row for each in found for _, _, row in each.differences}
    table = [*rows()] if {*EVERY_MODE} <= names else []
    if {*NEWER} <= names:
        table += newer_play.status_rows()
    unused = [row for row in table if row not in used]
    for row in unused:
        print(f"explains nothing: {row}")
    return len(unused)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
