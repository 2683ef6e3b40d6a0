"""Taking over what the Go operator recorded replaces no pod, and an edit made meanwhile is not lost."""

import asyncio
import base64
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.modes import MODES
from conformance.recordings import cases
from conformance.takeover import STORED, cluster, orders, paths, stored, taken_over, taking_over
from dynamo_operator import labels
from dynamo_operator.shared.cluster import PullSecret
from dynamo_operator.shared.templates import WORKLOADS, are_same
from dynamo_operator.shared.templates import units as units_of
from dynamoctl.installation.upgrade import Fate, Foreseen
from kube_runtime.types.kinds import Deployment, Service
from kube_runtime.types.meta import Kind, Object, content_of, key_of
from kube_runtime.wire import path_of
from lifecycle.running import GRAPH as GRAPHS
from lifecycle.running import REST_SECONDS
from simulated.clock import on_simulated_clock
from simulated.server import Server

EDIT = {"envs": [{"name": "EDITED_WHILE_NO_OPERATOR_RAN", "value": "yes"}]}

RENDERED_OTHERWISE = {
    "cache-vllm-default": "P3",
    "debug-mode": "L4",
    "extrapodmetadata": "L3, L4",
    "labels-annotations-all": "L3, L4",
    "multinode-probes": "M14",
    "multinode-trtllm": "M4",
    "multinode-vllm-dp": "M14",
    "multinode-vllm-ray": "M14",
    "multinode-vllm-shell": "M6, M14",
    "probes-maincontainer": "P1",
    "restart-on-create": "O4",
    "restart-sequential": "O4",
    "stealing-traffic-debug": "L4",
    "update-labels-only": "L3",
}
"""Cases whose pods we would render otherwise, with the rows of docs/deviations.md. Their pods stay."""

ADDRESSES = {"--natsAddr=": "NATS_SERVER", "--etcdAddr=": "ETCD_ENDPOINTS"}
"""Flags, and the variables that pods have of them."""

UNAVOIDABLE = {("grove", "labels-annotations-all", "frontend")}
"""Mode, case and unit of pods that no Service of ours would select: the user's label took the place of the
operator's (row L6)."""


@cache
def outcomes(mode: str) -> dict[str, list[Foreseen]]:
    """What becomes of the pods of each case, at all of its stages."""
    found: dict[str, list[Foreseen]] = {}
    for case in cases(MODES[mode]):
        for stage in range(case.stages):
            recorded = case.recorded(MODES[mode], stage)
            if recorded is not None:
                units = taken_over(MODES[mode], case, stage, recorded)
                found.setdefault(case.name, []).extend(units)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_no_recorded_pod_is_replaced(mode: str) -> None:
    found = [(case, each) for case, units in outcomes(mode).items() for each in units]
    assert len(found) > 2
    replaced = {(mode, case, each.unit) for case, each in found if each.fate is Fate.REPLACED}
    assert replaced == {each for each in UNAVOIDABLE if each[0] == mode}


@pytest.mark.parametrize("mode", ["none", "grove"])
def test_no_pod_is_replaced_where_the_go_operator_knew_neither_nats_nor_etcd(mode: str) -> None:
    """Our pods have variables in place of the addresses (rows P12 and P16); theirs have nothing."""
    flags = tuple(each for each in MODES[mode].flags if not each.startswith(tuple(ADDRESSES)))
    alone = replace(MODES[mode], flags=flags)
    fates: Counter[Fate] = Counter()
    for case in cases(alone):
        recorded = case.recorded(MODES[mode], 0)
        assert recorded is not None
        found = replace(recorded, objects=_without_addresses(recorded.objects))
        for each in taken_over(alone, case, 0, found):
            fates[each.fate] += (mode, case.name, each.unit) not in UNAVOIDABLE
    assert fates[Fate.KEPT] > 2
    assert not fates[Fate.REPLACED]


def _without_addresses(value: Any) -> Any:
    """The value without the variables of NATS and etcd."""
    if isinstance(value, dict):
        return {key: _without_addresses(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        kept = (child for child in value if not _is_address(child))
        return [_without_addresses(child) for child in kept]
    return value


def _is_address(value: Any) -> bool:
    return isinstance(value, dict) and value.get("name") in ADDRESSES.values()


@pytest.mark.parametrize("mode", ["grove", "grovekai", "flagsgrove"])
def test_cliques_keep_their_order(mode: str) -> None:
    """Otherwise an older Grove would replace all pods, or its webhook would reject every write."""
    several = 0
    for case, units in outcomes(mode).items():
        for each in units:
            live = orders(content_of(each.live))
            assert live == orders(each.desired), case
            several += len(live.get("cliques", ())) > 1
    assert several


@pytest.mark.stalls  # it reads the recordings
@pytest.mark.parametrize(("mode", "lag"), [("none", 2.0), ("lws", 0.0), ("grove", 2.0)])
@on_simulated_clock
async def test_no_object_is_made_anew_and_the_go_operator_can_take_it_back(mode: str, lag: float) -> None:
    """It replaces each `spec` by its own, and fails at an object without one that lacks its annotations.

    The Services that go are those for debugging, which it made for every component (row O1).
    """
    server = cluster(MODES[mode])
    before = everything(server)
    async with taking_over(server, MODES[mode], lag_seconds=lag):
        pass
    roll_back_as_the_page_says(server)
    after = everything(server)
    gone = {(kind, name[-2:]) for kind, name in before.keys() - after.keys()}
    assert gone <= {(Service.KIND, "-p"), (Service.KIND, "-d")}
    assert sum("spec" not in body and bool(marks(body)) for body in before.values()) > 150
    for kind, name in before.keys() & after.keys():
        theirs, ours = before[kind, name], after[kind, name]
        assert uids(theirs) <= uids(ours), name
        if "spec" not in theirs:
            assert marks(theirs).items() <= marks(ours).items(), name
        if kind.name in WORKLOADS and name != "service-name-invalid/g":  # it never had pods
            assert theirs["spec"].get("selector") == ours["spec"].get("selector")
            for unit, template in units_of(theirs).items():
                is_same = are_same(kind.name, units_of(ours)[unit], template)
                assert is_same or (mode, name.partition("/")[0], unit) in UNAVOIDABLE


def everything(server: Server) -> dict[tuple[Kind, str], Object]:
    return {(kind, name): body for kind in STORED.values() for name, body in stored(server, kind).items()}


def uids(body: Object) -> set[str]:
    """Those of an object and of its owners."""
    metadata = body["metadata"]
    return {each["uid"] for each in (metadata, *metadata.get("ownerReferences", ()))}


def marks(body: Object) -> dict[str, str]:
    """The annotations by which the Go operator sees that an object needs no update."""
    names = (labels.LAST_APPLIED_HASH, labels.LAST_APPLIED_GENERATION)
    return {key: value for key, value in body["metadata"].get("annotations", {}).items() if key in names}


def roll_back_as_the_page_says(server: Server) -> None:
    page = (Path(__file__).parents[2] / "docs/upgrade-from-go.md").read_text("utf-8").replace("\\\n", "")
    annotate = re.compile(r"^kubectl annotate (\S+) -A --overwrite -l (\S+)=(\S+) (.*)$", re.MULTILINE)
    for plurals, label, value, pairs in annotate.findall(page):
        metadata = {"annotations": dict(pair.split("=") for pair in pairs.split())}
        for (kind, _), body in everything(server).items():
            is_selected = (body["metadata"].get("labels") or {}).get(label) == value
            if is_selected and kind.plural in plurals.split(","):
                server.storage.merge(path_of(kind), key_of(body), {"metadata": metadata})


@pytest.mark.stalls  # it reads the recordings
@on_simulated_clock
async def test_a_pull_secret_that_comes_later_replaces_no_pod_that_was_taken_over() -> None:
    server = cluster(MODES["none"])
    served = templates(server).keys()
    async with taking_over(server, MODES["none"], lag_seconds=0.0):
        before = templates(server)
        for namespace in {body["metadata"]["namespace"] for body in stored(server, GRAPHS).values()}:
            server.storage.create(path_of(PullSecret.KIND), pull_secret(namespace))
        await asyncio.sleep(REST_SECONDS)
        after = templates(server)
        assert len(served) > 50
        assert {name for name in served if before[name] != after[name]} == set()


def templates(server: Server) -> dict[str, Object]:
    deployments = stored(server, Deployment.KIND)
    return {name: body["spec"]["template"] for name, body in deployments.items()}


def pull_secret(namespace: str) -> Object:
    """A pull secret for every registry of the recorded images."""
    content = b'{"auths": {"nvcr.io": {}, "docker.io": {}, "example.com": {}}}'
    return {
        "metadata": {"name": "later", "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(content).decode()},
    }


def test_what_differs_is_in_the_list_of_deviations() -> None:
    where: dict[str, set[str]] = {}
    for mode in MODES:
        for case, units in outcomes(mode).items():
            for each in units:
                # Row P15 touches every case with workers.
                other = {path for path in paths(each) if not path.endswith("[main].lifecycle")}
                if each.fate is Fate.KEPT and other:
                    where.setdefault(case, set()).update(other)
    assert RENDERED_OTHERWISE.keys() == where.keys(), where


@pytest.mark.parametrize("mode", ["none", "grove"])
def test_an_edit_that_no_operator_has_seen_is_carried_out(mode: str) -> None:
    checked = 0
    for case in cases(MODES[mode]):
        recorded = case.recorded(MODES[mode], 0)
        assert recorded is not None
        if any(each["kind"] == "DynamoGraphDeployment" for each in recorded.objects):
            for each in taken_over(MODES[mode], case, 0, recorded, edit=EDIT):
                checked += 1
                assert each.fate is Fate.REPLACED, (case.name, each.unit)
    assert checked > 2
