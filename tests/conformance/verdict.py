"""What comes of the comparison: for each case all differences, and which deviation explains them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from conformance.compare import ABSENT, Difference, differences, event_differences
from conformance.deviations import LATER, Row, explanation, rows
from conformance.modes import Mode
from conformance.normal import normal_events, normal_objects
from conformance.play import Observed, Stage, play
from conformance.recordings import Case, Recorded, cases
from kube_runtime.types.meta import Object


class Result(StrEnum):
    EQUAL = "equal"
    MEANT = "equal but for deviations"
    LATER = "not there yet"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case in one mode: what differs at which stage, and the row that explains it, if any."""

    case: str
    mode: str
    differences: tuple[tuple[int, Difference, Row | None], ...]
    offline: tuple[str, ...] = ()
    """Where what `dynamoctl render` prints is not what the operator has applied."""

    @property
    def unexplained(self) -> list[str]:
        return [f"stage {stage}: {each}" for stage, each, row in self.differences if row is None]

    @property
    def result(self) -> Result:
        if self.unexplained or self.offline:
            return Result.DIFFERENT
        if LATER in self.deviations:
            return Result.LATER
        return Result.MEANT if self.differences else Result.EQUAL

    @property
    def deviations(self) -> list[str]:
        return sorted({row.id for _, _, row in self.differences if row})


def verdicts(mode: Mode, folder: Path, chosen: Sequence[Case] = ()) -> dict[str, Verdict]:
    """The verdict on each case of a mode, or on the chosen ones."""
    judged = list(chosen) or cases(mode)
    table = rows()

    def is_expected(case: Case, stage: int, observed: Observed) -> bool:
        found = _compared(case, mode, stage, observed)
        return all(explanation(each, case.name, mode.name, table) for each in found)

    return judge(mode, judged, play(mode, judged, folder, is_expected))


def judge(mode: Mode, cases: Sequence[Case], observed: Mapping[Stage, Observed]) -> dict[str, Verdict]:
    """The verdicts on what was observed."""
    table = rows()
    return {
        case.name: Verdict(
            case.name,
            mode.name,
            tuple(
                (stage, each, explanation(each, case.name, mode.name, table))
                for stage in range(case.stages)
                for each in _compared(case, mode, stage, observed[case.name, stage])
            ),
            tuple(
                f"stage {stage}: {each}"
                for stage in range(case.stages)
                for each in observed[case.name, stage].offline
            ),
        )
        for case in cases
    }


def _compared(case: Case, mode: Mode, stage: int, observed: Observed) -> Iterator[Difference]:
    recorded = case.recorded(mode, stage)
    assert recorded is not None, f"{case.name}: stage {stage} was not recorded"
    given = [each for earlier in range(stage + 1) for each in case.input(earlier) if "kind" in each]
    yield from compared(recorded, observed, given)


def compared(recorded: Recorded, observed: Observed, given: Sequence[Object] = ()) -> Iterator[Difference]:
    """Where what was recorded and what was observed differ. `given` are objects of the input."""
    theirs, ours = (normal_objects(side.objects, given) for side in (recorded, observed))
    yield from differences(theirs, ours)
    yield from event_differences(normal_events(recorded.events), normal_events(observed.events))
    refused = bool(recorded.apply_errors), bool(observed.apply_errors)
    if refused[0] != refused[1]:
        said = [recorded.apply_errors or ABSENT, observed.apply_errors or ABSENT]
        yield Difference("Input", "", *said)
