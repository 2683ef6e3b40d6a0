"""An API server that is contested and overloaded: many writes are refused, and watches do not last."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

from faults.proxy import Proxy, cut, refusal, write_of

CONFLICTS = 0.30
TROUBLES = 0.05
CUT_SECONDS = 1.0


@dataclass
class Storm(Proxy):
    """While `is_on`, of all writes 30 % meet a conflict and 5 % worse, and each second a watch is cut."""

    dice: random.Random
    is_on: bool = False
    faults: Counter[str] = field(default_factory=Counter[str])

    async def met(self, request: web.Request) -> web.StreamResponse | None:
        write = write_of(request)
        if write is None or not self.is_on:
            return None
        chance = self.dice.random()
        if chance < CONFLICTS:
            self.faults["409"] += 1
            return refusal(409, "Conflict")
        if chance > CONFLICTS + TROUBLES:
            return None
        fault = self.dice.choice(("429", "500", "timeout"))
        self.faults[fault] += 1
        if fault == "429":
            return refusal(429, "TooManyRequests", {"Retry-After": "1"})
        if fault == "500":
            return refusal(500, "InternalError")
        request["times out"] = True
        return None

    async def answered(self, request: web.Request, _: bytes) -> web.StreamResponse | None:
        """A timeout says nothing about the write: it took effect."""
        return refusal(504, "Timeout") if "times out" in request else None

    async def beside(self) -> None:
        while True:
            await asyncio.sleep(CUT_SECONDS)
            if self.is_on and self.streams:
                self.faults["watch cut"] += 1
                cut(self.dice.choice(self.streams))
