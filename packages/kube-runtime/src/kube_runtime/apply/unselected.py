"""Find objects of ours that no watch brings, because their label is missing.

The watch of a kind that others use selects by a label that we write. An earlier operator may not have
written the label, and a user may remove it while no process of ours leads. A reconcile finds such an object
when it creates one of that name; objects that are no longer desired are found here only.

Each process lists them when it begins to lead: page by page, and only metadata. While some of ours are left
it lists again, for five minutes: a reconcile that met one first may have seen it for a moment only.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

import structlog

from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Forbidden, NotFound, OperatorError
from kube_runtime.rate_limits import Backoff
from kube_runtime.types.meta import Resource, metadata_type
from kube_runtime.watch.selector import Selector

SHOWN_SECONDS = 300.0
"""How long such an object stays in the cache, unless a write adds the label: its owner's time to act."""

AGAIN_SECONDS = 60.0
"""Seconds between two lists of a kind of which an object of ours was found."""

_RETRY = Backoff(first_seconds=1, limit_seconds=60)

_log = structlog.get_logger()


class UnselectedObjects:
    """Puts such objects into the cache. Run it as a server of the manager, while leading.

    `selectors` select, by type, the objects that the watch of the type leaves out (see `complement`).
    `is_ours` decides by the metadata which of them belong to this operator.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        selectors: Mapping[type[Resource], Selector],
        is_ours: Callable[[Resource], bool],
    ) -> None:
        self._writer = writer
        self._selectors = selectors
        self._is_ours = is_ours

    async def run(self) -> NoReturn:
        """List them until none of ours is left, for `SHOWN_SECONDS` at most; then wait to be cancelled."""
        left = [type_ for type_ in self._selectors if self._writer.cache.serves(type_)]
        for _ in range(round(SHOWN_SECONDS / AGAIN_SECONDS)):
            left = [type_ for type_ in left if await self._finds(type_, self._selectors[type_])]
            if not left:
                break
            await asyncio.sleep(AGAIN_SECONDS)
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")

    async def _finds(self, type_: type[Resource], selector: Selector) -> bool:
        """List until the API server answers; return whether there is one of ours."""
        failures = 0
        while True:
            try:
                return await self._list(type_, selector)
            except (Forbidden, NotFound):
                return False  # not installed, or not ours to read: the watch reports it
            except OperatorError as error:
                failures += 1
                seconds = _RETRY.seconds(failures, 0.5)
                _log.warning(
                    "objects without their label not listed",
                    kind=str(type_.KIND),
                    error=str(error),
                    retry_in_seconds=round(seconds, 1),
                )
                await asyncio.sleep(seconds)

    async def _list(self, type_: type[Resource], selector: Selector) -> bool:
        has_ours = False
        async for page in self._writer.client.pages(metadata_type(type_), **selector.query()):
            for live in page.items:
                if self._is_ours(live):
                    has_ours = True
                    _log.info("object lacks its label", kind=str(type_.KIND), name=str(live.key))
                    await self._writer.read_existing(
                        *(type_, live.key), is_ours=self._is_ours, seconds=SHOWN_SECONDS
                    )
        return has_ours


def complement(labels: str) -> str:
    """The label selector for the objects that a selector of one label leaves out.

    Raises:
        ValueError: the selector is neither `a` nor `a=b`.
    """
    [rule] = Selector(labels=labels).rules
    if rule.is_negated:
        raise ValueError(f"label selector {labels!r} is negated")
    return f"!{rule.name}" if rule.value is None else f"{rule.name}!={rule.value}"
