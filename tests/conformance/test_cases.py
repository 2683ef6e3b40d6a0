"""Every recorded case ends as recorded, but for what docs/deviations.md says.

Not every mode is played in full here; `make conformance` plays all of them.
"""

from collections.abc import Callable
from fnmatch import fnmatch
from functools import cache

import pytest

from conformance.modes import EVERY_MODE
from conformance.recordings import Case, cases
from conformance.verdict import Verdict, verdicts

PLAYED = {
    "none": ("*",),
    "grove": ("multinode-*", "agg-vllm", "disagg-*", "epp-config", "model-*", "pvc-create"),
    "legacy": ("*",),
}

pytestmark = pytest.mark.cluster


def chosen(mode: str) -> list[Case]:
    return [
        each
        for each in cases(EVERY_MODE[mode])
        if any(fnmatch(each.name, pattern) for pattern in PLAYED[mode])
    ]


@pytest.fixture(scope="session")
def verdicts_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Verdict]]:
    """The verdicts of a mode, which is played once."""

    @cache
    def of(mode: str) -> dict[str, Verdict]:
        return verdicts(EVERY_MODE[mode], tmp_path_factory.mktemp(mode), chosen(mode))

    return of


def each_case(*modes: str) -> pytest.MarkDecorator:
    named = [
        pytest.param(mode, each.name, id=f"{mode}-{each.name}") for mode in modes for each in chosen(mode)
    ]
    return pytest.mark.parametrize(("mode", "case"), named)


@each_case(*PLAYED)
def test_a_case_ends_as_recorded(
    verdicts_of: Callable[[str], dict[str, Verdict]], mode: str, case: str
) -> None:
    assert [] == verdicts_of(mode)[case].unexplained


@each_case(*(each for each in PLAYED if each != "legacy"))
def test_render_prints_what_was_applied(
    verdicts_of: Callable[[str], dict[str, Verdict]], mode: str, case: str
) -> None:
    assert () == verdicts_of(mode)[case].offline
