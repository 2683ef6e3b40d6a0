"""Follow one object, or all objects of a kind, through their changes.

A watch that breaks resumes where it was, with a backoff and a limit.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from dynamo_graphs.reader import S, Target
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, RequestState
from dynamo_operator.shared.conditions import Stated, is_ready
from kube_runtime.cache.watch import Broken, Changed, Event, Present, Removed, Started, Synced, Watch
from kube_runtime.client.client import Client
from kube_runtime.errors import Expired, ServerFailure, Throttled, Unreachable
from kube_runtime.times import Backoff
from kube_runtime.types.meta import Key, R, Selector

_OUTAGE = Backoff(first_seconds=0.5, limit_seconds=30)
_TRIES = 6
"""Failures in a row after which a watch gives up: half a minute or more."""


async def states(client: Client, type_: type[R], key: Key) -> AsyncGenerator[R, None]:
    """The object now, and after each change; ends when it is gone.

    Raises:
        DecodeError: it does not fit its type.
        OperatorError: it may not be watched, or the API server has not answered for half a minute.
    """
    selection = Selector(key.namespace, fields=f"metadata.name={key.name}")
    is_there = False
    async with aclosing(_events(client, type_, selection)) as events:
        async for event in events:
            match event:
                case Started():  # it may have been deleted while the watch was down
                    is_there = False
                case Present(resource) | Changed(resource):
                    is_there = True
                    yield resource
                case Broken(error):
                    raise error
                case Removed():
                    return
                case Synced() if not is_there:
                    return
                case _:
                    pass


async def once_ready(at: Target[S], seen: Callable[[S], object]) -> S:
    """The object once it is ready. `seen` is called with it as it is now, and at each change.

    Raises:
        Missing: it was deleted.
        OperatorError: as `states`.
    """
    async with aclosing(states(at.reading.client, at.type_, at.key)) as stream:
        async for stated in stream:
            seen(stated)
            if is_ready(stated):
                return stated
    raise at.missing()


def has_failed(stated: Stated) -> bool:
    """Whether the object never gets ready unless its spec is changed; only requests fail for good."""
    if not isinstance(stated, DynamoGraphDeploymentRequest):
        return False
    is_newest = stated.status.observed_generation >= stated.metadata.generation
    return is_newest and stated.status.state in {RequestState.FAILED, RequestState.DELETED}


async def snapshots(
    client: Client, type_: type[R], selection: Selector
) -> AsyncGenerator[dict[Key, R], None]:
    """All selected objects now, and after each change. The dictionary is updated in place.

    Objects that do not fit their type are left out.

    Raises: OperatorError if they may not be watched, or the API server has not answered for half a minute.
    """
    shown: dict[Key, R] = {}
    listed: dict[Key, R] | None = None
    async with aclosing(_events(client, type_, selection)) as events:
        async for event in events:
            match event:
                case Started():
                    listed = {}
                    continue
                case Present(resource) | Changed(resource):
                    (shown if listed is None else listed)[resource.key] = resource
                case Removed(key):
                    (shown if listed is None else listed).pop(key, None)
                case Synced() if listed is not None:
                    shown, listed = listed, None
                case _:
                    continue
            if listed is None:
                yield shown


async def _events(client: Client, type_: type[R], selection: Selector) -> AsyncGenerator[Event[R], None]:
    watch = Watch(client, type_, selection)
    failures = 0
    try:
        while True:
            try:
                events = await watch.step()
            except (Expired, ServerFailure, Throttled, Unreachable):
                failures += 1
                if failures == _TRIES:
                    raise
                await asyncio.sleep(_OUTAGE.seconds(failures))
                continue
            for event in events:
                if isinstance(event, Present | Changed | Synced):
                    failures = 0
                yield event
    finally:
        await watch.aclose()
