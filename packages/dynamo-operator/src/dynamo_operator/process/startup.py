"""Prepare the start: check the CRDs, learn the user name, acquire the scope.

The operator retries while the API server is down. A process that exited instead would be restarted with
growing backoff, and be late when the API server is back. The probes are served meanwhile: alive, not ready.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import structlog
from msgspec.structs import replace

from dynamo_operator.admission.identity import account_of, own_user, subject_of
from dynamo_operator.component.api import GROUP, VERSION
from dynamo_operator.process.detection import adopt_stored, later_kinds, log_served, log_stored, stored_later
from dynamo_operator.process.observability import health_server
from dynamo_operator.process.scope import Scope, scope_of
from dynamo_operator.settings import Settings, listen_address
from kube_runtime import errors
from kube_runtime.cache.informer import Informer
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Health
from kube_runtime.errors import ConfigError, Forbidden, Invalid, NotFound
from kube_runtime.times import Backoff, loop_time
from kube_runtime.types.meta import Object

T = TypeVar("T")

PATIENCE_SECONDS: Final = 900.0
"""How long the API server may be unreachable at start before the process exits with the error."""

_REFUSED_LIST_SECONDS: Final = 20.0
"""Seconds after which a forbidden list ends the start: waiting does not grant permissions."""

_LIST_SECONDS: Final = 180.0
"""Seconds after which any incomplete list ends the start."""

_PAUSES: Final = Backoff(first_seconds=1.0, limit_seconds=15.0)
_AWAY: Final = Health(("waiting for the API server",))
_FINE: Final = Health(())
_log = structlog.get_logger(__name__)


async def prepared(client: Client, settings: Settings, authorization: str) -> tuple[Settings, Scope, str]:
    """Return the settings with the operator's ServiceAccount, its acquired scope, and its user name.

    Raises:
        ConfigError: our CRDs are not installed, or the operator's identity is unknown.
        OperatorError: the API server refused, or did not answer for `PATIENCE_SECONDS`.
    """
    earlier = await retried_until_reachable(lambda: require_crds(client))
    later = await retried_until_reachable(lambda: later_kinds(client))
    if adopt_stored(client, stored := stored_later(earlier, later)):
        log_stored(stored)
    if not settings.webhooks.enabled:
        log_served(earlier, later)
    user = await retried_until_reachable(lambda: _user(client, authorization))
    settings = _with_operator_account(settings, user)
    scope = scope_of(client, settings)
    await retried_until_reachable(scope.claim)
    return settings, scope, user


async def retried_until_reachable(act: Callable[[], Awaitable[T]]) -> T:
    """Return what `act` returns; retry while the API server does not answer.

    Raises:
        OperatorError: it refused, it cannot be trusted, or `PATIENCE_SECONDS` are over.
    """
    deadline, failures = loop_time() + PATIENCE_SECONDS, 0
    while True:
        try:
            return await act()
        except errors.Untrusted:
            raise  # a retry does not fix a wrong CA or address
        except (errors.Unreachable, errors.ServerFailure, errors.Throttled) as error:
            failures += 1
            pause = _PAUSES.seconds(failures)
            if loop_time() + pause > deadline:
                raise
            _log.warning("waiting for the API server", error=str(error), retry_in_seconds=round(pause, 1))
            await asyncio.sleep(pause)


async def until_stopped(work: Awaitable[T], stop: asyncio.Event, settings: Settings) -> T | None:
    """Return what `work` returns, and serve the probes meanwhile; None if `stop` is set before.

    Raises: what `work` raises; ConfigError if the address of the probes cannot be bound.
    """
    address = listen_address("health.bindAddress", settings.health.bind_address)
    working = asyncio.ensure_future(work)
    tasks: list[asyncio.Future[Any]] = [working, asyncio.create_task(stop.wait())]
    if address is not None:
        probes = health_server(address, alive=lambda: _FINE, ready=lambda: _AWAY)
        tasks.append(asyncio.create_task(probes.run()))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        for task in done:
            task.result()
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def require_crds(client: Client) -> Object:
    """Check that our CRDs are installed. Returns the list of their kinds.

    Raises:
        ConfigError: they are not.
        OperatorError: the request failed.
    """
    try:
        return await client.get_json("apis", GROUP, VERSION)
    except NotFound:
        advice = (
            f"the kinds of {GROUP}/{VERSION} are not installed; "
            "run: dynamoctl install crds | kubectl apply --server-side -f -"
        )
        raise ConfigError("API server", advice) from None


async def _user(client: Client, authorization: str) -> str:
    try:
        return await own_user(client)
    except (NotFound, Forbidden, Invalid) as error:
        # an API server that is older, or forbids it
        _log.warning("SelfSubjectReview failed", error=str(error))
        return subject_of(authorization)


def _with_operator_account(settings: Settings, user: str) -> Settings:
    if settings.render.operator_account:
        return settings
    if not user:  # validation could not refuse graphs that run as the operator
        advice = "the API server does not report the operator's identity; set it to NAMESPACE/NAME"
        raise ConfigError("--operator-account", advice)
    return replace(settings, render=replace(settings.render, operator_account=account_of(user)))


@dataclass(frozen=True, slots=True)
class StartupWatch:
    """Ends the process if the caches do not sync in time.

    Without it, an operator without a permission would wait forever and report nothing.
    """

    informers: Sequence[Informer[Any]]

    async def run(self) -> NoReturn:
        """Wait until every cache is synced, then forever.

        Raises:
            ConfigError: some are not synced in time; the message has the causes.
        """
        late = await self._late_after(_REFUSED_LIST_SECONDS)
        refused = [informer for informer in late if isinstance(informer.last_error, Forbidden)]
        late = refused or await self._late_after(_LIST_SECONDS - _REFUSED_LIST_SECONDS)
        if late:
            causes = "; ".join(
                str(informer.last_error or f"{informer.type_.KIND}: no answer") for informer in late
            )
            raise ConfigError("start", f"cannot list everything that is needed: {causes}")
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def _late_after(self, seconds: float) -> list[Informer[Any]]:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for informer in self.informers:
                    await informer.synced.wait()
        return [informer for informer in self.informers if not informer.synced.is_set()]
