"""A round of calls to many workers, some of which fail."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

from dynamo_operator.models.calls import LoraApi, lora_session
from dynamo_operator.models.plan import Endpoint, Lora, Work, after, plan
from simulated.lora_worker import LoraWorker, Trouble

WANTED = Lora("support", "s3://weights/support")
START = datetime(2026, 1, 1, tzinfo=UTC)


async def work_at(api: LoraApi, work: Work, now: datetime) -> Endpoint:
    known = work.endpoint
    for call in work.calls:
        known = after(known, call, await api.call(known.address, call), now=now)
    return known


async def test_the_good_are_loaded_in_one_round_and_only_the_others_are_asked_again() -> None:
    kinds = [Trouble.HANGS, Trouble.BROKEN, Trouble.DROPS, *([Trouble.NONE] * 7)]
    workers = {trouble: LoraWorker(trouble=trouble) for trouble in set(kinds)}
    of = {f"http://10.0.0.{number}:9090": kinds[number % 10] for number in range(100)}
    ends = [Endpoint(address, address, is_callable=True) for address in of]
    async with AsyncExitStack() as stack:
        for each in workers.values():
            await stack.enter_async_context(each.serving())
        session = await stack.enter_async_context(lora_session())
        api = LoraApi(session, timeout_seconds=5, dial=lambda each: workers[of[each]].base)
        first = plan(WANTED, ends, now=START)
        known = await asyncio.gather(*(work_at(api, each, START) for each in first.work))
    assert 70 == sum(each.loaded == WANTED for each in known)
    assert 70 == len(workers[Trouble.NONE].asked)
    second = plan(WANTED, known, now=START + timedelta(seconds=5))
    bad = {address for address, trouble in of.items() if trouble is not Trouble.NONE}
    assert bad == {each.endpoint.address for each in second.work}
