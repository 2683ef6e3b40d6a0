"""Repeating a request: when it may help, never when it may do harm, and not for long."""

from itertools import pairwise

import pytest

from kube_runtime.client.client import TOTAL_SECONDS, TRIES, Request, ask
from kube_runtime.errors import ApiError, Conflict, ServerFailure, Throttled, Unreachable
from kube_runtime.url_path import url_path
from scripted.transport import Script
from simulated.clock import on_simulated_clock

REQUEST = Request("GET", url_path("x"))


async def asked(script: Script, *, repeatable: bool) -> bytes:
    return await ask(script, REQUEST, None, None, repeatable=repeatable)


@pytest.mark.parametrize("code", [500, 502, 503, 504])
@on_simulated_clock
async def test_a_failure_of_the_server_passes(code: int) -> None:
    script = Script().then(code).then(code).then(code).then(200, b"yes")
    assert b"yes" == await asked(script, repeatable=True)
    pauses = [b - a for a, b in pairwise(script.at_seconds)]
    assert all(
        0.5 * base <= pause <= 1.5 * base
        for base, pause in zip((0.5, 1.0, 2.0), pauses, strict=True)
    )


@on_simulated_clock
async def test_a_server_that_is_away_is_asked_a_few_times() -> None:
    script = Script()
    for _ in range(TRIES):
        script.then_raise(Unreachable("refused"))
    with pytest.raises(Unreachable, match="refused"):
        await asked(script, repeatable=True)
    assert TRIES == len(script.requests)
    assert script.at_seconds[-1] - script.at_seconds[0] <= TOTAL_SECONDS


@on_simulated_clock
async def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    class Cut:
        def __aiter__(self) -> "Cut":
            return self

        async def __anext__(self) -> bytes:
            raise Unreachable("cut")

    script = Script().then(200).then(200, b"whole")
    first = script.answers[0]
    assert not isinstance(first, Exception)
    first.body = Cut()
    assert b"whole" == await asked(script, repeatable=True)
    assert 2 == script.closed


@pytest.mark.parametrize("failure", [500, 503, Unreachable("cut")])
@on_simulated_clock
async def test_what_may_have_happened_is_not_done_again(failure: int | Exception) -> None:
    script = Script()
    if isinstance(failure, int):
        script.then(failure)
    else:
        script.then_raise(failure)
    with pytest.raises((ServerFailure, Unreachable)):
        await asked(script, repeatable=False)
    assert 1 == len(script.requests)


@pytest.mark.parametrize("repeatable", [True, False])
@on_simulated_clock
async def test_throttling_is_obeyed_for_every_request(repeatable: bool) -> None:
    script = Script().then(429, headers={"retry-after": "3"}).then(200, b"yes")
    assert b"yes" == await asked(script, repeatable=repeatable)
    assert 3 <= script.at_seconds[1] - script.at_seconds[0] <= 4


@on_simulated_clock
async def test_throttling_for_too_long_goes_to_the_caller() -> None:
    script = Script().then(429, headers={"retry-after": "3600"}).then(429)
    script.then(429, headers={"retry-after": "3600"})
    with pytest.raises(Throttled) as caught:
        await asked(script, repeatable=True)
    assert 3 == len(script.requests)
    assert script.at_seconds[-1] - script.at_seconds[0] <= TOTAL_SECONDS
    assert 60 == caught.value.retry_after_seconds


@pytest.mark.parametrize(
    ("code", "type_"), [(409, Conflict), (405, ApiError), (501, ServerFailure)]
)
@on_simulated_clock
async def test_a_refusal_is_final(code: int, type_: type[ApiError]) -> None:
    script = Script().then(code)
    with pytest.raises(type_):
        await asked(script, repeatable=True)
    assert 1 == len(script.requests)


@on_simulated_clock
async def test_a_version_that_does_not_exist_yet_is_not_waited_for() -> None:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    script = Script().then(504, {"message": "Timeout", "details": {"causes": causes}})
    with pytest.raises(ServerFailure, match="Too large resource version"):
        await asked(script, repeatable=True)
    assert 1 == len(script.requests)
