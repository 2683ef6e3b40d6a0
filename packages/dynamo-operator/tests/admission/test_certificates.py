"""Certificates change without a moment in which a server and a bundle do not fit together."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dynamo_operator.admission.certificates import (
    REPAIRS,
    CertificateRotation,
    CertificateStore,
    FileStore,
    Hosts,
    SecretStore,
    Stored,
    StoredCertificates,
    Terms,
    decide,
    hosts_of,
    usable_until,
)
from dynamo_operator.admission.configuration import Configuration
from dynamo_operator.admission.decide import ReviewContext
from dynamo_operator.admission.definitions import Definitions
from dynamo_operator.admission.review import Decisions
from dynamo_operator.admission.server import WebhookMetrics, WebhookServer
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import ServingSecret
from kube_runtime.cache.informer import CrdInformer, Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.crd import ConversionWebhook
from kube_runtime.tls import Certificate, Pair
from kube_runtime.types.kinds import ValidatingWebhookConfiguration
from kube_runtime.types.meta import Key, Object
from reviews.asking import SETTINGS
from reviews.registration import NAME, registration
from reviews.serving import HOSTS as HOSTS_ROTATION
from reviews.serving import new_certificate
from simulated.server import Server

TERMS = Terms.of_life(timedelta(days=90))
HOSTS = hosts_of("dyn", "hooks")
NEVER = timedelta()


def made() -> Stored:
    stored = decide(None, HOSTS, terms=TERMS, now=datetime.now(UTC), trusted_for=NEVER).stored
    assert stored is not None
    return stored


def step(
    found: Stored, after: timedelta, *, trusted_for: timedelta = NEVER, hosts: Hosts = HOSTS
) -> tuple[str, Stored]:
    now = datetime.now(UTC) + after
    decision = decide(found, hosts, terms=TERMS, now=now, trusted_for=trusted_for)
    return decision.action, decision.stored or found


def with_key_of(stored: Stored, other: Stored) -> Stored:
    return Stored(Pair(stored.serving.certificate, other.serving.key), stored.authorities)


def leaf(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_a_first_certificate_is_made_for_every_name_of_the_service() -> None:
    found = leaf(made().serving)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    expected = ["hooks", "hooks.dyn", "hooks.dyn.svc", "hooks.dyn.svc.cluster.local", "localhost"]
    assert expected == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(each) for each in names.get_values_for_type(x509.IPAddress)]


def test_the_common_name_is_short_whatever_the_release_is_called() -> None:
    hosts = hosts_of("n" * 63, "s" * 63)
    decision = decide(None, hosts, terms=TERMS, now=datetime.now(UTC), trusted_for=NEVER)
    assert decision.stored is not None
    assert "CN=dynamo-operator-webhook" == leaf(decision.stored.serving).subject.rfc4514_string()


def test_a_new_one_is_staged_when_a_third_of_the_life_is_left() -> None:
    first = made()
    assert ("", first) == step(first, timedelta(days=59))
    what, staged = step(first, timedelta(days=61))
    assert ("staged", first.serving) == (what, staged.serving)
    assert first.authorities in staged.authorities
    assert staged.authorities.count(b"BEGIN CERTIFICATE") == 2
    assert ("", staged) == step(staged, timedelta(days=61), trusted_for=timedelta(seconds=59))
    what, promoted = step(staged, timedelta(days=61), trusted_for=timedelta(seconds=60))
    assert ("promoted", Stored(staged.staged or first.serving, staged.authorities)) == (what, promoted)
    _, again = step(promoted, timedelta(days=122))
    assert again.authorities.count(b"BEGIN CERTIFICATE") == 2
    assert first.authorities not in again.authorities


@pytest.mark.parametrize(
    ("stored", "after_days", "service"),
    [
        pytest.param(Stored(Pair(b"", b""), b""), 0, "hooks", id="empty"),
        pytest.param(Stored(Pair(b"x", b"y"), b"z"), 0, "hooks", id="no PEM"),
        pytest.param(Stored(made().serving, b""), 0, "hooks", id="no authority"),
        pytest.param(Stored(made().serving, made().authorities), 0, "hooks", id="another authority"),
        pytest.param(with_key_of(made(), made()), 0, "hooks", id="another key"),
        pytest.param(made(), 91, "hooks", id="over"),
        pytest.param(made(), 0, "other", id="another service"),
    ],
)
def test_what_cannot_be_served_is_made_anew(stored: Stored, after_days: int, service: str) -> None:
    after = timedelta(days=after_days)
    assert "made" == step(stored, after, hosts=hosts_of("dyn", service))[0]


def test_a_staged_one_that_became_useless_is_dropped() -> None:
    stored = made()
    odd = Stored(stored.serving, stored.authorities, made().serving)
    what, after = step(odd, NEVER)
    assert ("dropped", None) == (what, after.staged)
    assert stored.authorities == after.authorities


@dataclass
class Cluster:
    """Some replicas and API servers, each of which has seen events up to some moment."""

    stored: Stored
    now: datetime
    bundle: bytes = b""
    bundle_since: timedelta = NEVER
    replicas: list[Stored] = field(default_factory=list)
    servers: list[bytes] = field(default_factory=list)

    def everybody_fits(self) -> bool:
        """Whether each API server trusts each replica."""
        return all(
            usable_until(replica.serving, trusted, HOSTS, self.now) is not None
            for replica in self.replicas
            for trusted in self.servers
        )


QUICK = Terms.of_life(timedelta(hours=6))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("twrs"), st.integers(0, 2)), min_size=20, max_size=80))
def test_no_order_of_hearing_makes_a_server_and_a_bundle_that_do_not_fit(
    events: list[tuple[str, int]],
) -> None:
    now = datetime.now(UTC)
    stored = decide(None, HOSTS, terms=QUICK, now=now, trusted_for=NEVER).stored
    assert stored is not None
    here = Cluster(stored, now, stored.authorities, QUICK.settle)
    here.replicas, here.servers = [stored] * 2, [stored.authorities] * 3
    for event, who in events:
        match event:
            case "t":  # time passes: less than API servers have to load a bundle
                here.now += QUICK.settle * (1, 5, 20)[who] / 10
                here.bundle_since += QUICK.settle * (1, 5, 20)[who] / 10
                if here.bundle_since >= QUICK.settle:
                    here.servers = [here.bundle] * 3
            case "w":  # a replica reconciles the Secret and the configuration
                is_there = here.bundle == here.stored.authorities
                decision = decide(
                    here.stored,
                    HOSTS,
                    terms=QUICK,
                    now=here.now,
                    trusted_for=here.bundle_since if is_there else NEVER,
                )
                here.stored = decision.stored or here.stored
                if here.bundle != here.stored.authorities:
                    here.bundle, here.bundle_since = here.stored.authorities, NEVER
            case "r":
                here.replicas[who % 2] = here.stored
            case _:
                here.servers[who] = here.bundle
        is_over = usable_until(here.stored.serving, here.stored.authorities, HOSTS, here.now) is None
        late = any(usable_until(each.serving, here.bundle, HOSTS, here.now) is None for each in here.replicas)
        if is_over or late:
            return  # no replica reconciled it for a third of its life
        assert here.everybody_fits()


KEY = Key("dyn", "webhook-server-cert")
SECRETS = "/api/v1/secrets"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@asynccontextmanager
async def a_keeper(server: Server) -> AsyncIterator[SecretStore]:
    """A replica with a cache of its own."""
    client, informer = Client(server), Informer(ServingSecret, namespace="dyn")
    task = asyncio.create_task(informer.run(client))
    await informer.synced.wait()
    try:
        yield SecretStore(client, Cache([informer.store]), KEY, HOSTS_ROTATION, TERMS)
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


def write(folder: Path, certificate: bytes, key: bytes) -> None:
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)


def configured(server: Server, stored: Stored) -> None:
    """Register us with that bundle."""
    bundle = base64.b64encode(stored.authorities).decode()
    server.storage.create(CONFIGURATIONS, registration("https://127.0.0.1:1", bundle))


@asynccontextmanager
async def upkeep(server: Server, store: CertificateStore) -> AsyncIterator[CertificateRotation]:
    """A whole replica, with its certificate in that store."""
    client = Client(server, field_manager="test")
    informer, crds = Informer(ValidatingWebhookConfiguration), CrdInformer()
    cache, certificate = Cache([informer.store, crds.store]), Certificate()
    webhooks = WebhookServer(
        ("127.0.0.1", 0),
        certificate,
        Decisions(lambda _: ReviewContext(SETTINGS), lambda _: False),
        WebhookMetrics(CollectorRegistry()),
        drain_seconds=0,
    )
    configuration = Configuration(client, cache, NAME)
    definitions = Definitions(client, cache, configuration)
    found = CertificateRotation(store, configuration, definitions, webhooks, (informer,))
    runs = (informer.run(client), crds.run(client), webhooks.run(), found.run())
    tasks: list[asyncio.Task[None]] = [asyncio.create_task(each) for each in runs]
    await asyncio.gather(informer.synced.wait(), crds.synced.wait())
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


async def test_ready_needs_a_certificate_a_registration_and_a_bundle_that_fits(tmp_path: Path) -> None:
    server, stored, other = Server(), new_certificate(), new_certificate()
    async with upkeep(server, FileStore(tmp_path)) as found:
        await until(found, "tls.crt: No such file or directory")
        write(tmp_path, stored.serving.certificate, other.serving.key)
        await until(found, "webhook certificate: cannot be used: KEY_VALUES_MISMATCH")
        write(tmp_path, stored.serving.certificate, stored.serving.key)
        await until(found, f"no ValidatingWebhookConfiguration {NAME}")
        for bundle, problem in (
            (b"no PEM", "the caBundle is not readable"),
            (other.authorities, "TLS to 127.0.0.1: [SSL: CERTIFICATE_VERIFY_FAILED]"),
        ):
            configured(server, Stored(stored.serving, bundle))
            await until(found, problem)
            server.storage.delete(CONFIGURATIONS, Key("", NAME), {})
        configured(server, Stored(stored.serving, "# Főtanúsítvány\n".encode() + stored.authorities))
        await until(found, "")


class FixedStore:
    """A certificate that never changes."""

    def __init__(self, stored: Stored) -> None:
        self.stored = StoredCertificates(stored.serving, stored.authorities, 60.0)

    async def step(self, trusted_for: timedelta) -> StoredCertificates:  # noqa: ARG002  never renewed
        return self.stored


async def test_a_bundle_that_others_keep_removing_is_repaired_a_few_times_and_then_reported() -> None:
    server, stored, removed = Server(), new_certificate(), 0
    configured(server, stored)
    async with upkeep(server, FixedStore(stored)) as found:
        async with asyncio.timeout(15):
            while not _says(found, "another client keeps removing the caBundle"):
                (first, *_) = server.storage.read(CONFIGURATIONS, Key("", NAME))["webhooks"]
                if first["clientConfig"].get("caBundle"):
                    bare = registration("https://127.0.0.1:1", "")
                    server.storage.merge(CONFIGURATIONS, Key("", NAME), {"webhooks": bare["webhooks"]})
                    removed += 1
                await asyncio.sleep(0.02)
    assert 2 + REPAIRS == removed, "what was there, what was written, and each repair of it"


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GRAPHS = Key("", str(DynamoGraphDeployment.KIND))


def defined(server: Server, conversion: Object | None = None) -> None:
    """Install the CRD of graphs, without its schemas."""
    spec = {"group": "nvidia.com", **({"conversion": conversion} if conversion else {})}
    metadata = {"name": GRAPHS.name, "generation": 1}
    server.storage.create(DEFINITIONS, {"metadata": metadata, "spec": spec})


def called(url: str) -> Object:
    client = {"url": f"{url}/convert"}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


async def test_a_crd_that_has_us_convert_gets_the_bundle_and_keeps_the_rest() -> None:
    server, stored = Server(), new_certificate()
    configured(server, stored)
    async with upkeep(server, FixedStore(stored)) as found:
        await until(found, "")
        conversion = called("https://127.0.0.1:1")
        defined(server, conversion)
        async with asyncio.timeout(15):
            while "caBundle" not in bundled(server):  # noqa: ASYNC110  # another reads it again, too
                await asyncio.sleep(0.02)
        bundle = base64.b64encode(stored.authorities).decode()
        assert {"url": "https://127.0.0.1:1/convert", "caBundle": bundle} == bundled(server)
        spec = server.storage.read(DEFINITIONS, GRAPHS)["spec"]
        assert ("nvidia.com", "Webhook") == (spec["group"], spec["conversion"]["strategy"])
        await until(found, "")


@pytest.mark.parametrize(
    "conversion",
    [
        None,
        {"strategy": "None"},
        called("https://127.0.0.1:2"),
        called("https://other.example.com"),
        ConversionWebhook("dyn", "others").conversion,
    ],
)
async def test_a_crd_that_names_no_conversion_by_us_stays_as_it_is(conversion: Object | None) -> None:
    server, stored = Server(), new_certificate()
    configured(server, stored)
    defined(server, conversion)
    before = server.storage.read(DEFINITIONS, GRAPHS)
    async with upkeep(server, FixedStore(stored)) as found:
        await until(found, "")
        await asyncio.sleep(0.1)
        assert before == server.storage.read(DEFINITIONS, GRAPHS)


def bundled(server: Server) -> Object:
    client: Object = server.storage.read(DEFINITIONS, GRAPHS)["spec"]["conversion"]["webhook"]["clientConfig"]
    return client
