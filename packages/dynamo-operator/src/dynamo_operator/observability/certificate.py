"""The certificate of the metrics endpoint, which scrapers can verify; rotated like that of the webhooks.

Its CA is in the same Secret, from where the Prometheus operator reads it. How soon it does is unknown, so a
new CA is published for a while before it is used.
"""

import asyncio
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import structlog

from dynamo_graphs.settings import MetricsSettings
from dynamo_operator.admission.certificate_store import CertificateStore, FileStore, SecretStore
from dynamo_operator.admission.certificates import Terms
from dynamo_operator.admission.hosts import hosts_of
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.controller.manager import Manager
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Key
from kube_runtime.serving.tls import Certificate, new_authority
from kube_runtime.types.admission import MetricsSecret

_LIFE: Final = timedelta(days=90)
_SETTLE: Final = timedelta(minutes=10)
_UNVERIFIED_LIFE: Final = timedelta(days=3650)
_LOOK_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 2.0
_log = structlog.get_logger()


class MetricsCertificate:
    """Rotates the certificate, on every replica. With `keeper` None one is created at start."""

    def __init__(
        self, keeper: CertificateStore | None, informers: tuple[Informer[Any], ...] = ()
    ) -> None:
        self._keeper = keeper
        self._informers = informers
        self._synced = asyncio.Event()
        self._wake = asyncio.Event()
        self._authorities: bytes | None = None
        self._since = 0.0
        self._problem = ""
        self.certificate = Certificate()

    def join(self, manager: Manager) -> None:
        """Become part of the process."""
        for informer in self._informers:
            manager.inform(informer)
        manager.on_synced(self._is_synced)
        manager.serve(self)

    async def _is_synced(self) -> None:
        self._synced.set()

    async def run(self) -> NoReturn:
        """Renew it until cancelled."""
        if self._keeper is None:
            await _load_unverified(self.certificate)
        else:
            await self._synced.wait()
            for informer in self._informers:
                informer.store.subscribe(self._heard)
            while True:
                self._wake.clear()
                wait = await self._turn(self._keeper)
                await _first(self._wake, wait)
        await asyncio.get_running_loop().create_future()  # until this task is cancelled
        raise AssertionError

    def _heard(self, _change: Change[Any]) -> None:
        self._wake.set()

    async def _turn(self, keeper: CertificateStore) -> float:
        """Take a step. Returns after how many seconds to look again."""
        now = loop_time()
        try:
            kept = await keeper.step(timedelta(seconds=now - self._since))
            if kept is None:
                return _RETRY_SECONDS
            await self.certificate.load(kept.pair)
        except (OperatorError, ssl.SSLError) as error:
            self._report(str(error))
            return _RETRY_SECONDS
        if kept.authorities != self._authorities:
            self._authorities, self._since = kept.authorities, now
        self._report("")
        return min(kept.again_in, _LOOK_SECONDS)

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("certificate of the metrics", problem=problem)
        self._problem = problem


@dataclass(frozen=True, slots=True)
class CertificatePaths:
    """Where the operator keeps its Secret: its own namespace."""

    client: Client
    cache: Cache
    namespace: str


def metrics_certificate(chosen: MetricsSettings, place: CertificatePaths) -> MetricsCertificate:
    """The certificate that the settings ask for."""
    if chosen.certificate_folder:
        return MetricsCertificate(FileStore(Path(chosen.certificate_folder)))
    if not chosen.secret_name:
        return MetricsCertificate(None)
    informer = Informer(
        MetricsSecret, namespace=place.namespace, fields=f"metadata.name={chosen.secret_name}"
    )
    keeper = SecretStore(
        place.client,
        place.cache,
        Key(place.namespace, chosen.secret_name),
        hosts_of(place.namespace, chosen.service_name),
        Terms(_LIFE, _SETTLE),
        MetricsSecret,
    )
    return MetricsCertificate(keeper, (informer,))


async def _load_unverified(certificate: Certificate) -> None:
    now = datetime.now(UTC)
    authority = await asyncio.to_thread(
        new_authority, "dynamo-operator metrics", now=now, life=_UNVERIFIED_LIFE
    )
    await certificate.load(
        authority.issue("localhost", ["localhost"], now=now, life=_UNVERIFIED_LIFE)
    )


async def _first(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return
