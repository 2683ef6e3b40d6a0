"""Taking over what the Go operator of the 1.5 line left behind replaces no pod, and loses no edit."""

from functools import cache

import pytest

from conformance.newer_takeover import Version, cases_of, kept_otherwise, lost_fields, taken_over
from dynamoctl.installation.upgrade import Fate

EDIT = {"envs": [{"name": "EDITED_WHILE_NO_OPERATOR_RAN", "value": "yes"}]}

IN_EITHER_VERSION = pytest.mark.parametrize("stored", ["v1beta1", "v1alpha1"])
IN_EACH_MODE = pytest.mark.parametrize("mode", ["none", "lws", "grove"])

UNAVOIDABLE = {
    "dcd-frontend": "a component without a graph, in the Dynamo namespace of its `dynamoNamespace`",
    "dcd-nonamespace": "a component without a graph and a `dynamoNamespace`",
    "deprecated-dynamonamespace": "a graph with the deprecated `dynamoNamespace`",
    "long-names-too-long": "labels of more than 63 characters: it never had pods",
}
"""Cases whose pods no Service of ours would select: their Dynamo namespace is another one than ours."""

LEFT_ALONE = {
    "backend-explicit-mismatch": "we refuse it",
    "dcd-multinode-sglang": "we refuse it: several nodes without LeaderWorkerSets",
    **dict.fromkeys(
        ("epp-args-override-semver", "epp-config-semver", "m-035", "m-036", "m-098", "n-epp-gaie"),
        "an endpoint picker without a frontend: workers have frontends of their own, or none",
    ),
    "m-002": "scaling group with cliques that we do not have",
    "n-dotted-name": "components would get other names",
    "n-force-scaling-group": "scaling group of one clique",
    "n-gms-interpod": "scaling group with cliques that we do not have",
    "n-gms-interpod-multinode": "scaling group with cliques that we do not have",
    "resources-invalid": "we refuse it",
    "service-name-invalid": "its set never existed",
}
"""Cases whose workloads we do not touch; their status says why."""


@cache
def outcomes(mode: str, stored: Version, *, is_edited: bool = False) -> dict[str, set[Fate]]:
    """What becomes of the pods of each case, at any of its stages."""
    fates: dict[str, set[Fate]] = {}
    for case in cases_of(mode):
        for stage in range(1 if is_edited else len(case.inputs)):
            units, _ = taken_over(case, mode, stage, stored, edit=EDIT if is_edited else None)
            fates.setdefault(case.name, set()).update(unit.fate for unit in units)
    return fates


@IN_EITHER_VERSION
@IN_EACH_MODE
def test_no_recorded_pod_is_replaced(mode: str, stored: Version) -> None:
    fates = outcomes(mode, stored)
    assert sum(Fate.KEPT in of_case for of_case in fates.values()) > 10
    assert {case for case, of_case in fates.items() if Fate.REPLACED in of_case} <= UNAVOIDABLE.keys()


def test_no_recorded_pod_is_what_we_render() -> None:
    """So the hash of its workers would save no pod on the way back, and is not computed."""
    fates = [outcomes(mode, "v1beta1") for mode in ("none", "lws", "grove")]
    assert not [case for of_mode in fates for case, of_case in of_mode.items() if Fate.SAME in of_case]


FILLED_IN = {
    "progressDeadlineSeconds": "by the API server",
    "revisionHistoryLimit": "by the API server",
    "rolloutStrategy": "by the webhook of LeaderWorkerSet",
    "leaderWorkerTemplate.restartPolicy": "by the webhook of LeaderWorkerSet",
}
"""Fields that a workload has whether or not its operator writes them."""


@IN_EACH_MODE
def test_a_workload_loses_no_field_beside_its_pods(mode: str) -> None:
    """Grove, for one, rejects a set without the topology constraint that it had."""
    assert {} == {path: cases for path, cases in lost_fields(mode).items() if path not in FILLED_IN}


@IN_EACH_MODE
def test_what_is_left_alone_is_known(mode: str) -> None:
    alone = set[str]()
    for case in cases_of(mode):
        units, workloads = taken_over(case, mode, 0, "v1beta1")
        if workloads - {unit.live.metadata.name for unit in units}:
            alone.add(case.name)
    assert alone <= LEFT_ALONE.keys()


@IN_EITHER_VERSION
@IN_EACH_MODE
def test_an_edit_that_no_operator_has_seen_is_carried_out(mode: str, stored: Version) -> None:
    fates = outcomes(mode, stored, is_edited=True)
    of_graphs = {case: of_case for case, of_case in fates.items() if of_case and not case.startswith("dcd-")}
    assert len(of_graphs) > 10
    assert {case for case, of_case in of_graphs.items() if of_case != {Fate.REPLACED}} == set()


def test_sets_that_are_taken_over_have_what_their_graphs_request() -> None:
    """So that no graph has a warning that its author could not have caused."""
    kept = kept_otherwise()
    assert len(kept) > 50
    assert {} == {name: texts for name, texts in kept.items() if texts}
