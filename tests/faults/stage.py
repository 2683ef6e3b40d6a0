"""Where scenarios run: separate namespaces, with operators that can be killed.

A scenario first runs without faults. That run counts the writes and records the final state; every other
run must reach the same one, whenever its operator died. An object that was deleted and recreated looks
right in the end. So identities are compared as well, and the deletions.
"""

import os
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from cluster.conftest import ControlPlane
from cluster.operator_process import Nursery
from cluster.world import NAMESPACES, PATIENCE_SECONDS, World
from faults.crash import ABSENT, Executioner, Moment, Point, Sentence
from faults.ending import Ending, ending
from faults.proxy import Proxy, Write, kubeconfig
from faults.scenarios import Scenario
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Kind

IS_LONG = os.environ.get("DYNAMO_TEST_LONG") == "1"
"""Whether there is time for everything."""

QUIET_SECONDS = 1.6
"""Without a write for this long there will be none: a status waits for at most a second."""

LOG_SHOWN = 10_000
"""Characters of a log that a failure shows."""

AT_ONCE = 6
"""Namespaces that are played in at the same time."""

_NO_TLS = ssl.create_default_context()
"""The proxies have none. One for all namespaces, as open connections are kept for each."""


class Outcome(Enum):
    """What became of an operator that was to die."""

    SURVIVED = "died, and the next one brought it to the right end"
    NOT_REACHED = "came to the right end in fewer writes"


@dataclass(frozen=True)
class Calm:
    """An undisturbed run: how many writes it took, and the states before and after."""

    writes: int
    prepared: Ending
    end: Ending
    deleted: frozenset[str]

    @property
    def kept(self) -> list[str]:
        """What was there before and is the same object after, by kind and name."""
        return [name for name, uid in self.prepared.uids.items() if self.end.uids.get(name) == uid]

    def points(self) -> list[Point]:
        """Every place to crash at, in order."""
        writes = range(1, self.writes + 1)
        return [ABSENT, *(Point(n, moment) for n in writes for moment in Moment)]


@dataclass(frozen=True)
class Stage:
    """A control plane behind a proxy that kills.

    `more` are kinds of other projects that are compared too, `flags` those of each operator.
    """

    proxy: Executioner
    nursery: Nursery
    more: tuple[Kind, ...] = ()
    flags: tuple[str, ...] = ()

    def calm(self, scenario: Scenario) -> Calm:
        with namespace(self.proxy) as world, self.nursery.operator(world.namespace, *self.flags):
            scenario.set_up(world)
            if scenario.before is not None:
                at_rest(world, self.proxy, scenario.is_prepared)
            prepared = ending(world, more=self.more)
            first = len(self.proxy.writes_in(world.namespace))
            scenario.act(world)
            at_rest(world, self.proxy, scenario.is_over)
            written = self.proxy.writes_in(world.namespace)[first:]
            end = ending(world, more=self.more)
            return Calm(len(written), prepared, end, deletions(written, world))

    def crash(self, scenario: Scenario, calm: Calm, point: Point) -> Outcome:
        """The scenario with an operator that dies at that point, and one that is started after it.

        Raises:
            AssertionError: it did not come to the same end, or not by a right way.
        """
        with namespace(self.proxy) as world:
            try:
                return self._crash(world, scenario, calm, point)
            except AssertionError as error:
                raise AssertionError(f"{scenario}, killed {point}: {error}") from error
            finally:
                self.proxy.sentences.pop(world.namespace, None)

    def _crash(self, world: World, scenario: Scenario, calm: Calm, point: Point) -> Outcome:
        with self.nursery.operator(world.namespace, *self.flags) as first:
            scenario.set_up(world)
            if scenario.before is not None:
                at_end(world, calm.prepared, scenario.is_prepared, more=self.more)
            before = ending(world, more=self.more)
            begun = len(self.proxy.writes_in(world.namespace))
            sentence = Sentence(point, first.kill)
            if point == ABSENT:
                sentence.carry_out()
                first.wait()
            self.proxy.sentences[world.namespace] = sentence
            scenario.act(world)
            earliest = time.monotonic() + QUIET_SECONDS
            while not sentence.is_carried_out.wait(0.05):
                if first.ended is not None:  # which is seen a moment before it is reported
                    assert sentence.is_carried_out.wait(PATIENCE_SECONDS), first.log.read_text()
                    break
                is_quiet = self.proxy.quiet_seconds(world.namespace) > QUIET_SECONDS
                if is_quiet and time.monotonic() > earliest and scenario.is_over(world):
                    at_end(world, calm.end, scenario.is_over, more=self.more)
                    return Outcome.NOT_REACHED
            first.wait()
        del self.proxy.sentences[world.namespace]
        with self.nursery.operator(world.namespace, *self.flags) as second:
            second.ready()
            try:
                after = at_end(world, calm.end, scenario.is_over, more=self.more)
            except AssertionError as error:
                how = "has ended" if second.ended is not None else "runs"
                log = second.log.read_text()[-LOG_SHOWN:]
                raise AssertionError(f"{error}\nthe second operator {how}:\n{log}") from error
            assert second.ended is None, second.log.read_text()
            errors = [line for line in second.log.read_text().splitlines() if '"level": "error"' in line]
            assert not errors, errors[0]
        replaced = [each for each in calm.kept if before.uids[each] != after.uids.get(each)]
        assert [] == replaced, f"deleted and made again: {replaced}"
        deleted = deletions(self.proxy.writes_in(world.namespace)[begun:], world)
        assert deleted <= calm.deleted, f"deleted without need: {deleted - calm.deleted}"
        assert () == after.orphans
        return Outcome.SURVIVED


@contextmanager
def stage_on(
    plane: ControlPlane, folder: Path, *more: Kind, flags: tuple[str, ...] = (), variables: Mapping[str, str]
) -> Iterator[Stage]:
    """A stage on that control plane, for operators with these flags and variables."""
    with Executioner(plane.server, plane.tls).running() as proxy:
        nursery = Nursery(kubeconfig(proxy, folder / "config"), folder, variables)
        yield Stage(proxy, nursery, more, flags)


@contextmanager
def namespace(proxy: Proxy) -> Iterator[World]:
    """A namespace of its own, as its user sees it through the proxy."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    world = World(proxy.url, _NO_TLS, name)
    world.create(NAMESPACES, {"metadata": {"name": name, "namespace": ""}})
    world.eventually(ServiceAccount.KIND, "default", within_seconds=PATIENCE_SECONDS)
    try:
        yield world
    finally:
        world.clear()


def at_rest(
    world: World, proxy: Proxy, is_over: Callable[[World], bool], *, quiet_seconds: float = QUIET_SECONDS
) -> None:
    """Return when it is over and nothing is written any more, seen from now on."""
    earliest = time.monotonic() + quiet_seconds
    world.until(
        lambda: (
            time.monotonic() > earliest
            and proxy.quiet_seconds(world.namespace) > quiet_seconds
            and is_over(world)
        ),
        what=lambda: str(ending(world).content),
        within_seconds=PATIENCE_SECONDS,
    )


def at_end(
    world: World, expected: Ending, is_over: Callable[[World], bool], *, more: tuple[Kind, ...] = ()
) -> Ending:
    """The state, as soon as it is the expected one; a second operator has to start before that."""
    deadline, pause = time.monotonic() + 2 * PATIENCE_SECONDS, 0.2
    while time.monotonic() < deadline:
        if is_over(world):
            found = ending(world, more=more)
            if found.content == expected.content:
                return found
        time.sleep(pause)
        pause = min(1.2 * pause, 1.0)  # it lists every kind
    how = "another end" if is_over(world) else "it is not over"
    raise AssertionError(f"{how}:\n{expected.difference(ending(world, more=more))}")


def deletions(written: Sequence[Write], world: World) -> frozenset[str]:
    """What the operator has deleted, by path."""
    return frozenset(
        each.path.replace(world.namespace, "NAMESPACE") for each in written if each.method == "DELETE"
    )
