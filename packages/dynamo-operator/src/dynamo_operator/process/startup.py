"""What a process needs to know before it can work, waited for while the API server is away.

A process that ended instead would be restarted with growing pauses, and be late when the API server is back.
Meanwhile the probes are answered: the process is alive and not ready.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import structlog
from msgspec.structs import replace

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_graphs.settings import Settings
from dynamo_operator.admission.identity import account_of, own_user, subject_of
from dynamo_operator.observability.server import health_server, listen_address
from dynamo_operator.process.scope import Scope, scope_of
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.controller.manager import Health
from kube_runtime.errors import (
    ConfigError,
    Forbidden,
    Invalid,
    NotFound,
    ServerFailure,
    Throttled,
    Unreachable,
    Untrusted,
)
from kube_runtime.rate_limits import Backoff

T = TypeVar("T")

PATIENCE_SECONDS: Final = 900.0
"""How long an API server may be away at start. Then the process ends, and says why."""

_REFUSED_LIST_SECONDS: Final = 20.0
"""After so long, a list that was refused ends the start: permissions do not come by waiting."""

_LIST_SECONDS: Final = 180.0
"""After so long, any list that has not come ends the start."""

_PAUSES: Final = Backoff(first_seconds=1.0, limit_seconds=15.0)
_AWAY: Final = Health(("waiting for the API server",))
_FINE: Final = Health(())
_log = structlog.get_logger()


async def prepared(
    client: Client, settings: Settings, authorization: str
) -> tuple[Settings, Scope, str]:
    """The settings, the operator's scope after acquiring it, and its user name at the API server.

    `authorization` is the header that its requests carry.

    Raises:
        ConfigError: our kinds are not installed, or the operator's identity is unknown.
        OperatorError: the API server refused, or did not answer for `PATIENCE_SECONDS`.
    """
    await retried_until_reachable(lambda: require_crds(client))
    user = await retried_until_reachable(lambda: _user(client, authorization))
    settings = _knowing_itself(settings, user)
    scope = scope_of(client, settings)
    await retried_until_reachable(scope.claim)
    return settings, scope, user


async def retried_until_reachable(act: Callable[[], Awaitable[T]]) -> T:
    """What `act` returns, retried for as long as the API server does not answer.

    Raises:
        OperatorError: it refused, it cannot be trusted, or `PATIENCE_SECONDS` are over.
    """
    deadline, failures = loop_time() + PATIENCE_SECONDS, 0
    while True:
        try:
            return await act()
        except Untrusted:
            raise  # a retry does not fix a wrong CA or address
        except (Unreachable, ServerFailure, Throttled) as error:
            failures += 1
            pause = _PAUSES.seconds(failures, random.random())  # noqa: S311  # spreads load
            if loop_time() + pause > deadline:
                raise
            _log.warning(
                "waiting for the API server", error=str(error), retry_in_seconds=round(pause, 1)
            )
            await asyncio.sleep(pause)


async def until_stopped(work: Awaitable[T], stop: asyncio.Event, settings: Settings) -> T | None:
    """What `work` returns, the probes answered meanwhile. None means: it is to stop before that.

    Raises: what `work` does; ConfigError where the address of the probes cannot be had.
    """
    address = listen_address("health.bindAddress", settings.health.bind_address)
    working = asyncio.ensure_future(work)
    background: list[asyncio.Task[object]] = [asyncio.create_task(stop.wait())]
    if address is not None:
        probes = health_server(address, alive=lambda: _FINE, ready=lambda: _AWAY)
        background.append(asyncio.create_task(probes.run()))
    try:
        await asyncio.wait([working, *background], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        for task in background:
            if task.done():
                task.result()
        return None
    finally:
        for task in (working, *background):
            task.cancel()
        await asyncio.gather(working, *background, return_exceptions=True)


async def require_crds(client: Client) -> None:
    """Return when our kinds are served.

    Raises:
        ConfigError: they are not installed.
        OperatorError: the API server could not be asked.
    """
    try:
        await client.get_json(f"/apis/{GROUP}/{VERSION}")
    except NotFound:
        advice = (
            f"the kinds of {GROUP}/{VERSION} are not installed; "
            "run: dynamoctl crds | kubectl apply --server-side -f -"
        )
        raise ConfigError("API server", advice) from None


async def _user(client: Client, authorization: str) -> str:
    """What the API server calls us; where it does not say, the subject of our token, "" if there is none."""
    try:
        return await own_user(client)
    except (NotFound, Forbidden, Invalid) as error:
        # an older API server, or one that keeps it to itself
        _log.warning("SelfSubjectReview failed", error=str(error))
        return subject_of(authorization)


def _knowing_itself(settings: Settings, user: str) -> Settings:
    """The settings with the operator's own ServiceAccount, unless that is set.

    Raises:
        ConfigError: it is not known, so a graph that runs as the operator would not be noticed.
    """
    if settings.render.operator_account:
        return settings
    if not user:
        advice = "the API server does not report the operator's identity; set it to NAMESPACE/NAME"
        raise ConfigError("--operator-account", advice)
    render = replace(settings.render, operator_account=account_of(user))
    return replace(settings, render=render)


@dataclass(frozen=True, slots=True)
class StartupWatch:
    """A server of the manager that gives the caches a limited time to fill.

    Without it, a missing permission would look like an operator that is quietly busy for ever.
    """

    informers: Sequence[Informer[Any]]

    async def run(self) -> NoReturn:
        """Wait until every cache is full, then for ever.

        Raises:
            ConfigError: some are still empty after the time is up; the message says why.
        """
        await self._wait(_REFUSED_LIST_SECONDS)
        refused = [
            informer for informer in self._late() if isinstance(informer.last_error, Forbidden)
        ]
        if not refused:
            await self._wait(_LIST_SECONDS - _REFUSED_LIST_SECONDS)
        if late := refused or self._late():
            causes = "; ".join(
                str(informer.last_error or f"{informer.type_.KIND}: no answer") for informer in late
            )
            raise ConfigError("start", f"cannot list everything that is needed: {causes}")
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    def _late(self) -> list[Informer[Any]]:
        return [informer for informer in self.informers if not informer.synced.is_set()]

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for informer in self.informers:
                    await informer.synced.wait()
