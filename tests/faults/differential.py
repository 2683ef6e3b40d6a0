"""Sequences of random edits, each against the creation of what it has led to.

The edits of one sequence follow from its number, so a failure can be repeated.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from faults.ending import Ending, ending
from faults.proxy import Proxy, kubeconfig
from faults.stage import AT_ONCE, IS_LONG, at_rest, namespace
from kube_runtime.apply.status import BUSY_SECONDS
from kube_runtime.types.meta import Kind, Object
from simulated.storage import merged

EDITS = (3, 8)
QUIET_SECONDS = BUSY_SECONDS + 0.6
"""One operator for several users is busy, and then a status waits for so long."""


def sequences(in_full: int, sample: int) -> int:
    """How many are played: all where there is time for it, or as many as the environment says."""
    return int(os.environ.get("DYNAMO_TEST_SEQUENCES", in_full if IS_LONG else sample))


@dataclass(frozen=True)
class Subject:
    """What is edited: an object of that kind, which begins as `first`.

    `edit` is a random merge patch of an object, `is_settled` whether the operator is through with the newest
    one. `more` are kinds that are compared too.
    """

    kind: Kind
    first: Callable[[], Object]
    edit: Callable[[Object, random.Random], Object]
    is_settled: Callable[[World], bool]
    more: tuple[Kind, ...] = ()

    def differences(self, proxy: Proxy, count: int) -> Sequence[str]:
        """What the ways of so many sequences have left behind, one text for each that has."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda number: self.difference(proxy, number), range(count))
            return [each for each in found if each]

    def difference(self, proxy: Proxy, number: int) -> str:
        """What the way of one sequence has left behind; empty when nothing."""
        try:
            body, end, edits = self._edited(proxy, number)
            afresh = self._made(proxy, deepcopy(body))
        except AssertionError as error:
            return f"sequence {number}: {error}"
        told = afresh.difference(end)
        return f"sequence {number}: {edits}\n{told}" if told else ""

    def _edited(self, proxy: Proxy, number: int) -> tuple[Object, Ending, list[Object]]:
        """What a random user has made of it: its last text, the end, and the edits."""
        dice = random.Random(number)  # noqa: S311 - the same edits in each run
        body, edits = self.first(), list[Object]()
        with namespace(proxy) as world:
            world.create(self.kind, body)
            for _ in range(dice.randint(*EDITS)):
                if dice.random() < 0.3:
                    world.until(lambda: self.is_settled(world))
                else:
                    time.sleep(dice.uniform(0.0, 0.5))
                patch = self.edit(body, dice)
                edits.append(patch)
                body = merged(body, patch)
                world.patch(self.kind, body["metadata"]["name"], patch)
            return body, self._end(world, proxy), edits

    def _made(self, proxy: Proxy, body: Object) -> Ending:
        """The end of one that is created with this text."""
        with namespace(proxy) as world:
            world.create(self.kind, body)
            return self._end(world, proxy)

    def _end(self, world: World, proxy: Proxy) -> Ending:
        """The end, once nothing is written any more and nothing waits for its collection."""
        at_rest(world, proxy, self.is_settled, quiet_seconds=QUIET_SECONDS)

        def settled() -> Ending | None:
            """Others write as well, such as autoscalers: nothing may change while it is read."""
            found, again = (ending(world, with_history=False, more=self.more) for _ in range(2))
            is_same = found.content == again.content and not found.orphans
            return found if is_same and self.is_settled(world) else None

        found: Ending = world.until(settled)
        return found


@contextmanager
def operated_through_proxy(
    plane: ControlPlane, folder: Path, *flags: str, **variables: str
) -> Iterator[Proxy]:
    """A way to the API server on which writes can be seen, and an operator of all namespaces behind it."""
    with Proxy(plane.server, plane.tls).running() as running:
        config, log = kubeconfig(running, folder / "config"), folder / "operator.log"
        with OperatorProcess(config, log, (*OFF, *flags), variables=variables) as operator:
            operator.ready()
            yield running
            assert operator.ended is None
            assert '"level": "error"' not in operator.log.read_text(encoding="utf-8")
