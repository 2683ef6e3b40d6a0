"""Whom old news reach makes nothing twice, takes nothing away that is wanted, and gets there."""

import random
import ssl
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import Nursery
from cluster.world import GRAPH, PODS, World
from faults.ending import KINDS, Ending, births_and_deaths, ending
from faults.proxy import kubeconfig
from faults.scenarios import IMAGE, PREFILL, a_graph, edit_service, is_quite_ready
from faults.stage import AT_ONCE, IS_LONG, QUIET_SECONDS, at_rest, namespace
from faults.stale import Behind, Lag

LATEST_NEWS_SECONDS = 2.6
SOON, SOME, LONG = (0.0, 0.2), (1.0, 2.0), (2.0, 2.4)
NONE = Lag((0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
LAGS = {
    "all are late": Lag(SOME, SOME, SOME),
    "graphs are late": Lag(LONG, SOON, SOON),
    "owners are late": Lag(LONG, LONG, SOON),
    "events of owners are first": Lag(SOON, SOON, LONG),
}

EDITS: dict[str, Callable[[World], object]] = {
    "an image is edited": edit_service("Decode", IMAGE),
    "a service is scaled": edit_service("Frontend", {"replicas": 2}),
    "a service is added": edit_service("Prefill", PREFILL),
    "a service is removed": edit_service("Decode", None),
}

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@dataclass(frozen=True)
class Office:
    """Where servers that are behind are set up, and operators that believe them."""

    server: str
    tls: ssl.SSLContext
    folder: Path

    @contextmanager
    def opened(self, lag: Lag) -> Iterator[tuple[Behind, Nursery]]:
        """A server that can be delayed, and operators of it."""
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir()
        dice = random.Random(5)  # noqa: S311 - the same delays in each run
        with Behind(self.server, self.tls, dice, lag).running() as proxy:
            yield proxy, Nursery(kubeconfig(proxy, folder / "config"), folder)


@pytest.fixture
def office(kinds: ControlPlane, tls: ssl.SSLContext, tmp_path: Path) -> Office:
    return Office(kinds.server, tls, tmp_path)


def rest(world: World, behind: Behind) -> None:
    """Return when the graph is ready and the latest news have arrived."""
    seconds = LATEST_NEWS_SECONDS if behind.is_late else QUIET_SECONDS
    at_rest(world, behind, is_quite_ready, quiet_seconds=seconds)


def lived_through(office: Office, lag: Lag | None) -> tuple[Ending, Counter[str]]:
    """The end of some edits that follow each other, and what was created and deleted on the way."""
    with office.opened(lag or NONE) as (behind, operators), namespace(behind) as world:
        behind.is_late = lag is not None
        with operators.operator(world.namespace) as operator:
            operator.ready()
            with births_and_deaths(world) as happened:
                world.create(GRAPH, a_graph())
                rest(world, behind)
                for edit in EDITS.values():
                    edit(world)
                    rest(world, behind)
                assert operator.ended is None
                return ending(world), happened()


def test_late_news_lead_to_the_same_end_by_the_same_way(office: Office) -> None:
    with ThreadPoolExecutor() as pool:
        played = pool.map(partial(lived_through, office), (None, *LAGS.values()))
        (expected, way), *late = played
    for lag, (actual, late_way) in zip(LAGS, late, strict=True):
        assert "" == expected.difference(actual), lag
        assert way == late_way, lag


def workload_of(event: str) -> str:
    """The Deployment of the pod that such a line is about."""
    return event.rpartition(" ")[2].rsplit("-", 2)[0]


def believing_old_lists(office: Office, edit: Callable[[World], object], lag: Lag) -> str:
    """What an operator does that starts with the lists of before an edit; empty when nothing wrong."""
    with office.opened(lag) as (behind, operators), namespace(behind) as world:
        with operators.operator(world.namespace):
            world.create(GRAPH, a_graph())
            rest(world, behind)
        behind.is_remembering = True
        with operators.operator(world.namespace) as second:
            second.ready()
            behind.is_remembering = False
            edit(world)
            rest(world, behind)
        before = ending(world, with_history=False)
        with births_and_deaths(world, (*KINDS, PODS)) as counted:
            behind.is_old = behind.is_late = True
            with operators.operator(world.namespace) as third:
                third.ready()
                rest(world, behind)
            happened = counted()
        pods = [each for each in happened if each.split()[1] == PODS.name]
        # The garbage collector deletes what an absent owner owned. What is there and desired stays.
        wrong = [each for each in happened if each.partition(" ")[2] in before.uids]
        wrong += [each for each in pods if f"Deployment {workload_of(each)}" in before.uids]
        return " ".join(wrong) or before.difference(ending(world, with_history=False))


def test_an_operator_that_starts_with_old_lists_disturbs_nothing_and_ends_right(office: Office) -> None:
    every = list(product(EDITS, LAGS) if IS_LONG else zip(EDITS, LAGS, strict=True))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = pool.map(lambda each: believing_old_lists(office, EDITS[each[0]], LAGS[each[1]]), every)
        told = dict(zip(every, played, strict=True))
    assert {} == {each: wrong for each, wrong in told.items() if wrong}
