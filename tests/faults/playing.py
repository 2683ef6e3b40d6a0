"""Scenarios that are played at once, each with an operator that dies at each chosen point."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from faults.crash import Point
from faults.scenarios import Scenario
from faults.stage import AT_ONCE, IS_LONG, Calm, Outcome, Stage


def chosen(scenario: Scenario, points: Sequence[Point]) -> Sequence[Point]:
    """All points, or one that differs between scenarios, so that early and late ones are tried."""
    if IS_LONG:
        return points
    digest = hashlib.sha256(str(scenario).encode()).digest()
    return [points[int.from_bytes(digest[:4], "big") % len(points)]]


def every_second(scenarios: Sequence[Scenario]) -> pytest.MarkDecorator:
    """Parametrizes a test by all scenarios, of which every second is for `make crash` only."""
    rows = [pytest.param(each, marks=[pytest.mark.long][: n % 2]) for n, each in enumerate(scenarios)]
    return pytest.mark.parametrize("scenario", rows, ids=str)


@dataclass(frozen=True)
class Run:
    """A scenario that is being played: calmly first, then with an operator that dies at each chosen point."""

    calm: Future[Calm]
    crashes: list[Future[Outcome]]


def asked(request: pytest.FixtureRequest) -> list[Scenario]:
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    ours = (item for item in items if item.module is request.module)
    given = (each.callspec.params.values() for each in ours if hasattr(each, "callspec"))
    return [value for values in given for value in values if isinstance(value, Scenario)]


@contextmanager
def played(stage: Stage, scenarios: Sequence[Scenario]) -> Iterator[Mapping[Scenario, Run]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        calms = {scenario: pool.submit(stage.calm, scenario) for scenario in scenarios}
        runs = {scenario: Run(calm, []) for scenario, calm in calms.items()}
        for scenario, run in runs.items():
            if run.calm.exception() is None:
                calm = run.calm.result()
                for point in chosen(scenario, calm.points()):
                    run.crashes.append(pool.submit(stage.crash, scenario, calm, point))
        yield runs
        pool.shutdown(cancel_futures=True)


def all_survived(scenario: Scenario, run: Run) -> tuple[str, int, int]:
    """The scenario, how many points were played, and at how many of them an operator died.

    Raises:
        AssertionError: one of the runs came to another end, or, of all points, none to a death.
    """
    assert () == run.calm.result().end.orphans
    died = [each.result() for each in run.crashes].count(Outcome.SURVIVED)
    assert died or not IS_LONG  # a single point may be one that needs no write in this run
    return str(scenario), len(run.crashes), died
