"""Operators that die at a chosen write, and what must be true after the next one has started.

The proxy knows nothing of processes: it calls `kill` at the moment that was asked for, before anything else
can happen. A request of the dead that was already on its way is cut, as its connection would be.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from aiohttp import web

from faults.proxy import Proxy, cut, write_of


class Moment(StrEnum):
    """When the operator dies: before its request reaches the API server, or before it reads the answer."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, order=True)
class Point:
    """One place to crash at: a write of the scenario, counted from 1."""

    write: int
    moment: Moment

    def __str__(self) -> str:
        return f"{self.moment} write {self.write}"


ABSENT = Point(0, Moment.BEFORE)
"""The operator is dead already when the user acts."""


@dataclass
class Sentence:
    """What is to happen to the operator of a namespace."""

    point: Point
    kill: Callable[[], None]
    counted: int = 0
    is_carried_out: threading.Event = field(default_factory=threading.Event)

    def carry_out(self) -> None:
        self.kill()
        self.is_carried_out.set()


_LAST_OF = web.RequestKey("last of", Sentence)
"""On the request after whose effect an operator is to die."""


@dataclass
class Executioner(Proxy):
    """Kills the operators of the namespaces in `sentences`, each at its point."""

    sentences: dict[str, Sentence] = field(default_factory=dict[str, Sentence], init=False)

    async def met(self, request: web.Request) -> web.StreamResponse | None:
        write = write_of(request)
        sentence = self.sentences.get(write.namespace) if write else None
        if sentence is None:
            return None
        if sentence.is_carried_out.is_set():
            return cut(request)
        sentence.counted += 1
        if sentence.counted == sentence.point.write:
            if sentence.point.moment is Moment.BEFORE:
                sentence.carry_out()
                return cut(request)
            request[_LAST_OF] = sentence
        return None

    async def answered(self, request: web.Request, _: bytes) -> web.StreamResponse | None:
        sentence = request.get(_LAST_OF)
        if sentence is None:
            return None
        sentence.carry_out()
        return cut(request)
