"""The certificate of the metrics endpoint, which scrapers can verify.

Its CA is in the same Secret, from which the Prometheus operator reads it. The delay is unknown, so a new CA
is published for a while before it is used.
"""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from dynamo_graphs.settings import MetricsSettings
from dynamo_graphs.types.secrets import MetricsSecret
from dynamo_operator.certificates.lifecycle import Terms
from dynamo_operator.certificates.rotation import RESYNC_SECONDS, RETRY_SECONDS, Rotation
from dynamo_operator.certificates.store import (
    CertificateStore,
    FileStore,
    StoredCertificates,
    kept_in_secret,
)
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Key
from kube_runtime.serving.tls import Certificate, new_authority

_LIFE: Final = timedelta(days=90)
_SETTLE: Final = timedelta(minutes=10)
_UNVERIFIED_LIFE: Final = timedelta(days=3650)
_log = structlog.get_logger()


class MetricsCertificate(Rotation):
    """Renews the certificate of the metrics endpoint."""

    def __init__(self, store: CertificateStore, informers: tuple[Informer[Any], ...] = ()) -> None:
        super().__init__(informers)
        self._store = store
        self._authorities: bytes | None = None
        self._since = 0.0
        self._problem = ""
        self.certificate = Certificate()

    async def _turn(self) -> float:
        now = loop_time()
        try:
            stored = await self._store.step(timedelta(seconds=now - self._since))
            if stored is None:
                return RETRY_SECONDS
            await self.certificate.load(stored.pair)
        except (OperatorError, ssl.SSLError) as error:
            self._report(str(error))
            return RETRY_SECONDS
        if stored.authorities != self._authorities:
            self._authorities, self._since = stored.authorities, now
        self._report("")
        return min(stored.recheck_seconds, RESYNC_SECONDS)

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("certificate of the metrics", problem=problem)
        self._problem = problem


class UnverifiedStore:
    """Issues one certificate for the lifetime of the process. No scraper can verify it."""

    def __init__(self) -> None:
        self._issued: StoredCertificates | None = None

    async def step(self, trusted_for: timedelta) -> StoredCertificates:  # noqa: ARG002  # never renewed
        """Issue it, once."""
        if self._issued is None:
            self._issued = await asyncio.to_thread(_unverified)
        return self._issued


def _unverified() -> StoredCertificates:
    now = datetime.now(UTC)
    authority = new_authority("dynamo-operator metrics", now=now, life=_UNVERIFIED_LIFE)
    pair = authority.issue("localhost", ["localhost"], now=now, life=_UNVERIFIED_LIFE)
    return StoredCertificates(pair, None, _UNVERIFIED_LIFE.total_seconds())


def metrics_certificate(
    settings: MetricsSettings, client: Client, cache: Cache, namespace: str
) -> MetricsCertificate:
    """The certificate as configured: from files, from a Secret in `namespace`, or unverified."""
    if settings.certificate_folder:
        return MetricsCertificate(FileStore(Path(settings.certificate_folder)))
    if not settings.secret_name:
        return MetricsCertificate(UnverifiedStore())
    key, terms = Key(namespace, settings.secret_name), Terms(_LIFE, _SETTLE)
    informer, store = kept_in_secret(
        client, cache, key, settings.service_name, terms, MetricsSecret
    )
    return MetricsCertificate(store, (informer,))
