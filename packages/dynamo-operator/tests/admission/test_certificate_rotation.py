"""The certificate is kept by several replicas, and ready means that a real connection succeeds."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dynamo_operator.admission.certificates import (
    CertificateRotation,
    FileStore,
    SecretStore,
    Stored,
    StoredCertificates,
    Terms,
)
from dynamo_operator.admission.configuration import Configuration
from dynamo_operator.admission.decide import DecisionPool, OperatorIdentity, ReviewContext
from dynamo_operator.admission.server import WebhookServer
from dynamo_operator.observability import WebhookMetrics
from dynamo_operator.shared.cluster import ServingSecret
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key, Object
from kube_runtime.tls import Certificate
from kube_runtime.types.kinds import ValidatingWebhookConfiguration
from reviews.asking import SETTINGS
from reviews.registration import Registration, registration
from reviews.serving import HOSTS, in_a_thread, new_certificate
from simulated.server import Server

KEY = Key("dyn", "webhook-server-cert")
TERMS = Terms.of_life(timedelta(days=90))
NAME = "dynamo-operator-validating"
SECRETS = "/api/v1/secrets"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@asynccontextmanager
async def a_keeper(server: Server) -> AsyncIterator[SecretStore]:
    """A replica with a cache of its own."""
    client, informer = Client(server), Informer(ServingSecret, namespace="dyn")
    task = asyncio.create_task(informer.run(client))
    await informer.synced.wait()
    try:
        yield SecretStore(client, Cache([informer.store]), KEY, HOSTS, TERMS)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def kept_by(keeper: SecretStore) -> StoredCertificates:
    """What it has in the end."""
    async with asyncio.timeout(10):
        while (found := await keeper.step(timedelta())) is None:  # noqa: ASYNC110  # each step acts
            await asyncio.sleep(0.02)
    return found


async def test_replicas_that_start_together_serve_one_certificate() -> None:
    server = Server()
    async with a_keeper(server) as one, a_keeper(server) as other:
        first, second = await asyncio.gather(kept_by(one), kept_by(other))
    assert first.pair == second.pair
    assert first.authorities == second.authorities


async def test_a_secret_of_others_is_taken_over_key_by_key() -> None:
    server = Server()
    odd = {"tls.crt": "bm8=", "user.txt": "a2VlcA=="}
    metadata = {"namespace": "dyn", "name": KEY.name, "labels": {"a": "b"}}
    server.storage.create(SECRETS, {"metadata": metadata, "data": odd})
    async with a_keeper(server) as keeper:
        await kept_by(keeper)
    found = server.storage.read(SECRETS, KEY)
    assert {"a": "b"} == found["metadata"]["labels"]
    assert {"tls.crt", "tls.key", "ca.crt", "user.txt"} == found["data"].keys()


async def test_files_are_read_again(tmp_path: Path) -> None:
    keeper = FileStore(tmp_path)
    with pytest.raises(ConfigError, match=r"tls\.crt: No such file"):
        await keeper.step(timedelta())
    for _ in range(2):
        pair = new_certificate().serving
        write(tmp_path, pair.certificate, pair.key)
        assert pair == (await keeper.step(timedelta())).pair


def write(folder: Path, certificate: bytes, key: bytes) -> None:
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)


def configured(server: Server, stored: Stored) -> None:
    """Register us with that bundle."""
    bundle = base64.b64encode(stored.authorities).decode()
    wanted = Registration("dynamo-operator", "dyn", ca_bundle=bundle, url="https://127.0.0.1:1")
    body: Object = registration(wanted)
    assert NAME == body["metadata"]["name"]
    server.storage.create(CONFIGURATIONS, body)


@asynccontextmanager
async def upkeep(server: Server, folder: Path) -> AsyncIterator[CertificateRotation]:
    """A whole replica, with its certificate in files."""
    client = Client(server)
    informer = Informer(ValidatingWebhookConfiguration)
    cache, certificate, identity = Cache([informer.store]), Certificate(), OperatorIdentity(client)
    identity.user = "operator"
    webhooks = WebhookServer(
        ("127.0.0.1", 0),
        certificate,
        DecisionPool(in_a_thread, lambda _: ReviewContext(SETTINGS), lambda _: False),
        WebhookMetrics(CollectorRegistry()),
        drain_seconds=0,
    )
    configuration = Configuration(client, cache, NAME)
    found = CertificateRotation(
        identity, FileStore(folder), configuration, webhooks, certificate, (informer,)
    )
    runs = (informer.run(client), webhooks.run(), found.run())
    tasks: list[asyncio.Task[None]] = [asyncio.create_task(each) for each in runs]
    await informer.synced.wait()
    await found.synced()
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(found: CertificateRotation, problem: str) -> None:
    """Return when readiness says that, or nothing if it is ""."""
    async with asyncio.timeout(15):
        while not _says(found, problem):  # noqa: ASYNC110  # a probe is asked again and again, too
            await asyncio.sleep(0.02)


def _says(found: CertificateRotation, problem: str) -> bool:
    said = " ".join(found.ready().problems)
    return problem in said if problem else not said


async def test_ready_needs_a_certificate_a_registration_and_a_bundle_that_fits(
    tmp_path: Path,
) -> None:
    server, stored = Server(), new_certificate()
    async with upkeep(server, tmp_path) as found:
        await until(found, "tls.crt: No such file or directory")
        write(tmp_path, stored.serving.certificate, stored.serving.key)
        await until(found, f"no ValidatingWebhookConfiguration {NAME}")
        configured(server, new_certificate())
        await until(found, "TLS to 127.0.0.1: [SSL: CERTIFICATE_VERIFY_FAILED]")
        server.storage.delete(CONFIGURATIONS, Key("", NAME), {})
        configured(server, stored)
        await until(found, "")


async def test_files_that_are_no_pair_are_told_and_not_served(tmp_path: Path) -> None:
    server, stored = Server(), new_certificate()
    configured(server, stored)
    write(tmp_path, stored.serving.certificate, new_certificate().serving.key)
    async with upkeep(server, tmp_path) as found:
        await until(found, "webhook certificate: cannot be used: KEY_VALUES_MISMATCH")
        write(tmp_path, stored.serving.certificate, stored.serving.key)
        await until(found, "")


async def test_a_bundle_that_is_no_pem_is_told(tmp_path: Path) -> None:
    server, stored = Server(), new_certificate()
    configured(server, Stored(stored.serving, b"no PEM"))
    write(tmp_path, stored.serving.certificate, stored.serving.key)
    async with upkeep(server, tmp_path) as found:
        await until(found, "the caBundle is not readable")
