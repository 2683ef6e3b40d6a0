"""The finalizer of a model: unload its LoRAs, within a time limit, and then release the object.

Each worker gets one attempt, however many hang. What is still loading gets some time to finish, since an
unload that overtakes the load would have no effect.
"""

import asyncio
import math
from collections.abc import Sequence

from dynamo_graphs.plan.lora_calls import Call, Ending, Endpoint, LoraVerb
from dynamo_operator.lora.calls import KnownEndpoints, ModelCalls, Run

LIMIT_SECONDS = 28.0
"""Seconds that unloading may take; with the writes before and after, deletion takes under 30 s."""

_CALL_SECONDS = 8.0
_LOADING_SECONDS = 12.0


async def unload_all(
    calls: ModelCalls, namespace: str, known: KnownEndpoints, endpoints: Sequence[Endpoint]
) -> int | None:
    """Number of endpoints at which unloading failed or did not end in time.

    None: we were not responsible for the model for at least a part of the time.
    """
    # Were as many to hang as there are places, the others would never get theirs.
    longest = _CALL_SECONDS * max((len(each.names) for each in endpoints), default=1)
    rounds = max(1, LIMIT_SECONDS // (longest + 1))
    places = asyncio.Semaphore(max(calls.at_once, math.ceil(len(endpoints) / rounds)))
    done: set[int] = set()

    async def at(number: int, endpoint: Endpoint) -> None:
        await _loaded(known.runs.get(endpoint.place))
        async with places:
            # A name that is not unloaded keeps no other from its try.
            replies = [
                await calls.call(
                    *(namespace, endpoint.address, Call(LoraVerb.UNLOAD, name)),
                    timeout_seconds=_CALL_SECONDS,
                )
                for name in endpoint.names
            ]
        if all(each.ending is Ending.DONE for each in replies):
            done.add(number)

    try:
        async with asyncio.timeout(LIMIT_SECONDS), asyncio.TaskGroup() as group:
            for number, endpoint in enumerate(endpoints):
                group.create_task(at(number, endpoint))
    except TimeoutError:
        pass  # endpoints without a call by now are not waited for
    if not calls.may_call(namespace):
        return None
    return len(endpoints) - len(done)


async def _loaded(run: Run | None) -> None:
    """Wait for a running load, and give it up if it takes too long."""
    if run is None or run.task is None:
        return
    await asyncio.wait([run.task], timeout=_LOADING_SECONDS)
    run.task.cancel()
