"""`make conformance`: how far our operator and the recorded one agree, per mode."""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from conformance.deviations import rows
from conformance.modes import MODES
from conformance.recordings import NOT_YET, every_case
from conformance.verdict import Result, Verdict, verdicts


def main() -> int:
    """Play what is asked for, print the table, and return how many cases differ."""
    arguments = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    arguments.add_argument("modes", nargs="*", default=[*MODES], help="modes to play; all of them")
    arguments.add_argument("--case", action="append", default=[], help="only this case")
    arguments.add_argument("--report", type=Path, help="also write all differences to this file")
    asked = arguments.parse_args()
    found: list[Verdict] = []
    results = "".join(f"{each:>26}" for each in Result)
    print(f"{'mode':12}{'cases':>6}{results}{'s':>6}")
    for name in asked.modes:
        began = time.monotonic()
        chosen = [each for each in every_case() if each.name in asked.case]
        chosen = [each for each in chosen if each.recorded(MODES[name], 0)]
        if asked.case and not chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            judged = [*verdicts(MODES[name], Path(folder), chosen).values()]
        found += judged
        count = Counter(each.result for each in judged)
        counts = "".join(f"{count[each]:26}" for each in Result)
        print(f"{name:12}{len(judged):6}{counts}{time.monotonic() - began:6.0f}", flush=True)
    for kind, names in NOT_YET.items():
        print(f"not yet: {kind}, {len(names)} cases")
    report = _report(found)
    print(report)
    if not asked.case and len(asked.modes) == len(MODES):
        _print_unused(found)
    if asked.report:
        asked.report.write_text(report, encoding="utf-8")
    return sum(each.result is Result.DIFFERENT for each in found)


def _report(found: list[Verdict]) -> str:
    lines: list[str] = []
    for each in found:
        if each.unexplained:
            lines += ["", f"{each.mode} {each.case}", *(f"  {line}" for line in each.unexplained)]
    return "\n".join(lines)


def _print_unused(found: list[Verdict]) -> None:
    used = {id(row) for each in found for _, _, row in each.differences if row}
    for row in rows():
        if id(row) not in used:
            print(f"explains nothing: {row}")


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
