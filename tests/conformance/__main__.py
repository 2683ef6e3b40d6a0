"""`make conformance`: agreement of our operator with the recorded one, per mode."""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conformance import newer_play
from conformance.deviations import rows
from conformance.modes import EVERY_MODE
from conformance.newer import FACTS
from conformance.recordings import every_case
from conformance.verdict import Result, Verdict, verdicts


def main() -> int:
    """Play what is asked for, print the table, and return how many cases and rows are wrong."""
    arguments = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    modes = "modes to play, all but `newer` by default; `legacy` is each that begins with it"
    arguments.add_argument("modes", nargs="*", default=[*EVERY_MODE], help=modes)
    arguments.add_argument("--case", action="append", default=[], help="only this case")
    arguments.add_argument("--report", type=Path, help="write all, explained ones too")
    asked = arguments.parse_args()
    found: list[Verdict] = []
    results = "".join(f"{each:>26}" for each in Result)
    print(f"{'mode':16}{'cases':>6}{results}{'s':>6}")
    played = [name for name in EVERY_MODE if {name, name.partition("-")[0]} & {*asked.modes}]
    for name in played:
        began = time.monotonic()
        chosen = [each for each in every_case() if each.name in asked.case]
        chosen = [each for each in chosen if each.recorded(EVERY_MODE[name], 0)]
        if asked.case and not chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            judged = [*verdicts(EVERY_MODE[name], Path(folder), chosen).values()]
        found += judged
        count = Counter(each.result for each in judged)
        counts = "".join(f"{count[each]:26}" for each in Result)
        print(f"{name:16}{len(judged):6}{counts}{time.monotonic() - began:6.0f}", flush=True)
    newer = [*_newer({*asked.modes}, asked.case)]
    print(*_lines(found, explained=False), *(line for line in newer if line.startswith("?")), sep="\n")
    if asked.report:
        asked.report.write_text("\n".join([*_lines(found, explained=True), *newer]), encoding="utf-8")
    is_whole = not asked.case and len(played) == len(EVERY_MODE)
    wrong = sum(each.result is Result.DIFFERENT for each in found)
    wrong += sum(line.startswith("?") for line in newer)
    return wrong + (_unused(found) if is_whole else 0)


def _newer(modes: set[str], names: list[str]) -> Iterator[str]:
    """Play the cases of the 1.5 line in the modes `newer-…`, and return their differences."""
    for mode in FACTS:
        cases = newer_play.played(mode, names)
        if not {f"newer-{mode}", "newer"} & modes or not cases:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            result = newer_play.outcome(mode, cases, newer_play.seen(mode, cases, Path(folder)))
        counts = f"{result.equal:26}{result.deviating:26}{0:26}{result.different:26}"
        print(f"{f'newer-{mode}':16}{len(cases):6}{counts}{time.monotonic() - began:6.0f}", flush=True)
        yield from result.lines


def _lines(found: list[Verdict], *, explained: bool) -> Iterator[str]:
    """The differences of each case, each with the id of its row; `?` is an unintended one."""
    for each in found:
        shown = [line for line in each.differences if explained or line[2] is None]
        if shown or each.offline:
            yield f"\n{each.mode} {each.case}"
        for stage, difference, row in shown:
            yield f"  {row.id if row else '?':5} stage {stage}: {difference}"
        yield from (f"  render {line}" for line in each.offline)


def _unused(found: list[Verdict]) -> int:
    """How many rows explain nothing, so that they should go; each is printed."""
    used = {row for each in found for _, _, row in each.differences}
    unused = [row for row in rows() if row not in used]
    for row in unused:
        print(f"explains nothing: {row}")
    return len(unused)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
