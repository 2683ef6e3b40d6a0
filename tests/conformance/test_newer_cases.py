"""A choice of the cases of the 1.5 line ends as recorded, in both versions; `make conformance` plays all."""

from collections.abc import Callable
from fnmatch import fnmatch
from functools import cache

import pytest

from conformance.newer_play import judged, played, seen
from conformance.newer_recordings import NewerCase

CHOSEN = {
    "none": (
        *("agg-vllm", "deprecated-*", "disagg-*", "epp-config-semver", "extrapod*", "ingress-full"),
        *("model-lora", "pvc-create", "replicas-unset", "restart-*", "scaling-adapter*", "shm-*", "update-*"),
        *("m-002", "m-003", "m-016", "m-036", "m-066", "m-083", "n-agg-*", "n-model-*", "n-planner"),
        *("n-remove-component", "n-restart-*", "n-rollout-*", "n-scale-only", "n-scaling-adapter"),
    )
}

pytestmark = pytest.mark.cluster


def chosen(mode: str) -> list[NewerCase]:
    return [case for case in played(mode) if any(fnmatch(case.name, pattern) for pattern in CHOSEN[mode])]


@pytest.fixture(scope="session")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[str]]]:
    """By case, the differences of a mode that no row explains; the mode is played once."""

    @cache
    def of(mode: str) -> dict[str, list[str]]:
        cases = chosen(mode)
        found = seen(mode, cases, tmp_path_factory.mktemp(f"newer-{mode}"))
        return {
            case.name: [
                f"stage {number}: {difference}"
                for number in range(len(case.inputs))
                for difference, row in judged(case, mode, number, found[case.name, number])
                if row is None
            ]
            for case in cases
        }

    return of


@pytest.mark.parametrize(("mode", "case"), [(mode, case.name) for mode in CHOSEN for case in chosen(mode)])
def test_a_case_ends_as_recorded(
    differing: Callable[[str], dict[str, list[str]]], mode: str, case: str
) -> None:
    assert [] == differing(mode)[case]
