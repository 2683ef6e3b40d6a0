"""Follow one object through its changes.

A watch that breaks resumes where it was, with a backoff and a limit.
"""

import asyncio
import random
from collections.abc import AsyncGenerator

from kube_runtime.client.requests import Client
from kube_runtime.errors import Expired, ServerFailure, Throttled, Unreachable
from kube_runtime.kind import Key
from kube_runtime.rate_limits import Backoff
from kube_runtime.types.meta import R
from kube_runtime.watch.events import Broken, Changed, Present, Removed, Started, Synced
from kube_runtime.watch.machine import Watch
from kube_runtime.watch.selector import Selector

_OUTAGE = Backoff(first_seconds=0.5, limit_seconds=30)
_TRIES = 6
"""So often in a row a watch may fail before it is given up: half a minute or more."""


async def states(client: Client, type_: type[R], key: Key) -> AsyncGenerator[R, None]:
    """The object now, and after each change; ends when it is gone.

    Raises:
        DecodeError: it does not fit its type.
        OperatorError: it may not be watched, or the API server has not answered for half a minute.
    """
    selection = Selector(key.namespace, fields=f"metadata.name={key.name}")
    watch = Watch(client, type_, selection)
    failures, is_there = 0, False
    try:
        while True:
            try:
                events = await watch.step()
            except (Expired, ServerFailure, Throttled, Unreachable):
                failures += 1
                if failures == _TRIES:
                    raise
                await asyncio.sleep(_OUTAGE.seconds(failures, random.random()))  # noqa: S311 - no secret
                continue
            for event in events:
                match event:
                    case Started():  # it may have been deleted while the watch was down
                        is_there = False
                    case Present(found) | Changed(found):
                        failures, is_there = 0, True
                        yield found
                    case Broken(error):
                        raise error
                    case Removed():
                        return
                    case Synced() if not is_there:
                        return
                    case _:
                        pass
    finally:
        await watch.aclose()
