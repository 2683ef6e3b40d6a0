"""What a frontend is measured as: its times, its failures, and prompts of the right length."""

import pytest

from dynamo_profiler.client import (
    MAX_REQUESTS,
    MIN_REQUESTS,
    Load,
    Measured,
    RequestFailed,
    Response,
    frontend,
    load_of,
)
from dynamo_profiler.configuration import Targets
from simulated.frontend import Frontends, Pace, frontends

TARGETS = Targets(isl=100, osl=8, ttft=0.2, itl=0.02)


async def loaded(server: Frontends, rate: float = 200, seconds: float = 0.2, model: str = "") -> Load:
    async with frontend(server.url.format(frontend="f"), TARGETS) as client:
        return await client.load(model or await client.warm_up(0), rate, seconds)


async def test_times_are_those_of_the_tokens_and_prompts_have_the_targets_length() -> None:
    with frontends(lambda _: Pace(first=0.3, between=0.05)) as server:
        load = await loaded(server)
    assert (40, 0, 8) == (load.requests, load.failures, load.tokens)
    assert load.ttft >= load.median_ttft >= 0.3
    assert load.itl >= load.median_itl >= 0.05
    assert load.miss(TARGETS).startswith("ttft of ")
    assert 90 <= load.prompt_tokens <= 110, "the server counts two tokens for each word"
    assert server.prompts[0] == 100


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (Pace(status=503, answers=2), 'HTTP 503: {"error": "overloaded"}'),
        (Pace(status=307, answers=2), "HTTP 307"),
        (Pace(lines=(b"data: {}\n\n",)), "an answer of 0 tokens"),
        (Pace(lines=(b"data: <html>\n\n",)), "an unreadable chunk"),
        (Pace(lines=(b'data: {"error": {"code": 500}}\n\n',)), '{"code": 500}'),
        (Pace(lines=(b"x" * 2_000_000,)), "LineTooLong: "),
    ],
)
async def test_a_request_without_a_whole_answer_is_a_failure_with_its_cause(pace: Pace, said: str) -> None:
    with frontends(lambda _: pace) as server:
        load = await loaded(server, 1000, 0.01, "served")
    assert load.requests == MIN_REQUESTS
    assert load.failures >= MIN_REQUESTS - 2
    assert said in load.failure
    assert f"{load.failures} of {load.requests} requests failed" in load.miss(TARGETS)


async def test_a_frontend_that_never_answers_is_given_up() -> None:
    with frontends(lambda _: Pace(status=404)) as server, pytest.raises(RequestFailed, match="HTTP 404"):
        await loaded(server)


async def test_one_load_has_a_bounded_number_of_requests() -> None:
    with frontends(lambda _: Pace()) as server:
        load = await loaded(server, 1e6, 3600, "served")
    assert MAX_REQUESTS == load.requests


def answers(*ttfts: float) -> list[Response]:
    return [Response(ttft, 0.01, 8, 100) for ttft in ttfts]


def test_nine_of_ten_requests_must_be_within_the_target_and_one_of_a_hundred_may_fail() -> None:
    assert "" == load_of(1, answers(*[0.1] * 9, 9.0), []).miss(TARGETS)
    assert "ttft of 9000 ms is above 200 ms" == load_of(1, answers(*[0.1] * 8, 9, 9), []).miss(TARGETS)
    assert "" == load_of(1, answers(*[0.1] * 99), ["lost"]).miss(TARGETS)
    assert "2 of 100 requests failed: lost" == load_of(1, answers(*[0.1] * 98), ["lost"] * 2).miss(TARGETS)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (Measured("g", "c", 1, problem="not ready"), "not ready"),
        (Measured("g", "c", 1, (load_of(1, answers(0.1), []),)), ""),
        (Measured("g", "c", 1, (load_of(1, [], ["lost"]),)), "1 of 1 requests failed: lost"),
    ],
)
def test_a_candidate_says_why_it_misses(measured: Measured, said: str) -> None:
    assert said == measured.miss(TARGETS)
