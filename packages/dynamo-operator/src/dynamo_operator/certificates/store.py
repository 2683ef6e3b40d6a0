"""The store of a certificate: a Secret that the operator renews, or files that others renew.

Every replica renews the Secret. Each write carries the resourceVersion that it was decided from, so one
replica wins, and the others read its certificate at their next check.
"""

import asyncio
import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import structlog

from dynamo_graphs.types.secrets import ServingSecret
from dynamo_operator.certificates.lifecycle import Hosts, Stored, Terms, decide, hosts_of
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.errors import ConfigError, Conflict
from kube_runtime.kind import Key, Object
from kube_runtime.serving.tls import Pair

FILES_SECONDS: Final = 10.0
"""Seconds between reads of the files. The kubelet takes a minute to update them."""

_RACE_SECONDS: Final = 1.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StoredCertificates:
    """The certificate to serve. `authorities` None: another controller writes the CA bundle."""

    pair: Pair
    authorities: bytes | None
    recheck_seconds: float


class CertificateStore(Protocol):
    """Provides and renews a certificate."""

    async def step(self, trusted_for: timedelta) -> StoredCertificates | None:
        """The current certificate; None until it has been issued.

        `trusted_for`: how long clients have trusted the authorities of the previous step.
        """
        ...


@dataclass(frozen=True, slots=True)
class SecretStore:
    """Issues and renews a certificate in a Secret."""

    client: Client
    cache: Cache
    key: Key
    hosts: Hosts
    terms: Terms
    type_: type[ServingSecret] = ServingSecret

    async def step(self, trusted_for: timedelta) -> StoredCertificates | None:
        """Take one step of the rotation."""
        secret = self.cache.get(self.type_, self.key)
        stored = _stored(secret.data) if secret else None
        now = datetime.now(UTC)
        decision = decide(stored, self.hosts, terms=self.terms, now=now, trusted_for=trusted_for)
        if decision.stored is not None:
            await self._write(secret, decision.stored, decision.action)
            return None
        if stored is None:
            return None
        wait = max(decision.recheck_at - now, timedelta(seconds=_RACE_SECONDS))
        return StoredCertificates(stored.serving, stored.authorities, wait.total_seconds())

    async def _write(self, secret: ServingSecret | None, stored: Stored, action: str) -> None:
        """Write the Secret. The next step follows when the cache has it."""
        data = _data(stored)
        try:
            if secret is None:
                await self.client.create(self.type_, self._new(data))
            else:
                patch = {
                    "metadata": {"resourceVersion": secret.metadata.resource_version},
                    "data": data,
                }
                await self.client.merge_patch(self.type_, self.key, patch, uid=secret.metadata.uid)
        except Conflict:
            _log.info("another replica wrote first", secret=str(self.key))
        else:
            _log.info("certificate", what=action, secret=str(self.key))

    def _new(self, data: dict[str, str | None]) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "namespace": self.key.namespace,
                "name": self.key.name,
                "labels": {"app.kubernetes.io/managed-by": "dynamo-operator"},
            },
            "type": "Opaque",
            "data": {name: value for name, value in data.items() if value is not None},
        }


def kept_in_secret(
    client: Client,
    cache: Cache,
    key: Key,
    service: str,
    terms: Terms,
    type_: type[ServingSecret] = ServingSecret,
) -> tuple[Informer[ServingSecret], SecretStore]:
    """The store of a Service's certificate in the Secret of that key, and the informer of the Secret."""
    informer = Informer(type_, namespace=key.namespace, fields=f"metadata.name={key.name}")
    return informer, SecretStore(client, cache, key, hosts_of(key.namespace, service), terms, type_)


@dataclass(frozen=True, slots=True)
class FileStore:
    """Reads the certificate from files that others write: cert-manager, or an administrator."""

    folder: Path

    async def step(self, trusted_for: timedelta) -> StoredCertificates:  # noqa: ARG002  # only reads
        """Read the files again.

        Raises:
            ConfigError: they cannot be read.
        """
        certificate, key = await asyncio.to_thread(self._read)
        return StoredCertificates(Pair(certificate, key), None, FILES_SECONDS)

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return (self.folder / "tls.crt").read_bytes(), (self.folder / "tls.key").read_bytes()
        except OSError as error:
            raise ConfigError(str(error.filename), error.strerror or str(error)) from error


def _stored(data: dict[str, str]) -> Stored | None:
    """Decode the data of the Secret; None if it is unusable."""
    try:
        texts = {name: base64.b64decode(value, validate=True) for name, value in data.items()}
        return Stored(
            Pair(texts["tls.crt"], texts["tls.key"]),
            texts["ca.crt"],
            Pair(texts["next.crt"], texts["next.key"]) if "next.crt" in texts else None,
        )
    except (KeyError, ValueError, binascii.Error):
        return None


def _data(stored: Stored) -> dict[str, str | None]:
    """Encode the data of the Secret. None removes a key."""
    staged = stored.staged
    texts = {
        "tls.crt": stored.serving.certificate,
        "tls.key": stored.serving.key,
        "ca.crt": stored.authorities,
        "next.crt": staged.certificate if staged else None,
        "next.key": staged.key if staged else None,
    }
    return {
        name: None if text is None else base64.b64encode(text).decode()
        for name, text in texts.items()
    }
