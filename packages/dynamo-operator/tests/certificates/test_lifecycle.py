"""Certificates change without a moment in which a server and a bundle do not fit together."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_operator.admission.certificates import (
    Hosts,
    Stored,
    Terms,
    decide,
    hosts_of,
    usable_until,
)
from kube_runtime.tls import Pair

TERMS = Terms.of_life(timedelta(days=90))
HOSTS = hosts_of("dyn", "hooks")
LONG = timedelta(days=1)
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


def test_a_fresh_certificate_stays() -> None:
    stored = made()
    assert ("", stored) == step(stored, timedelta(days=59))


def test_a_new_one_is_staged_when_a_third_of_the_life_is_left() -> None:
    stored = made()
    what, after = step(stored, timedelta(days=61))
    assert "staged" == what
    assert stored.serving == after.serving
    assert stored.authorities in after.authorities
    assert after.authorities.count(b"BEGIN CERTIFICATE") == 2


def test_the_new_one_is_served_only_when_its_authority_was_trusted_for_a_while() -> None:
    _, staged = step(made(), timedelta(days=61))
    assert ("", staged) == step(staged, timedelta(days=61), trusted_for=timedelta(seconds=59))
    what, after = step(staged, timedelta(days=61), trusted_for=timedelta(seconds=60))
    assert "promoted" == what
    assert (staged.staged, staged.authorities) == (after.serving, after.authorities)
    assert after.staged is None


def test_the_second_change_forgets_the_oldest_authority() -> None:
    first = made()
    _, staged = step(first, timedelta(days=61))
    _, promoted = step(staged, timedelta(days=61), trusted_for=LONG)
    _, again = step(promoted, timedelta(days=122))
    assert again.authorities.count(b"BEGIN CERTIFICATE") == 2
    assert first.authorities not in again.authorities


@pytest.mark.parametrize(
    "stored",
    [
        Stored(Pair(b"", b""), b""),
        Stored(Pair(b"x", b"y"), b"z"),
        Stored(made().serving, b""),
        Stored(made().serving, made().authorities),
        Stored(Pair(made().serving.certificate, made().serving.key), made().authorities),
    ],
    ids=["empty", "no PEM", "no authority", "another authority", "another key"],
)
def test_what_cannot_be_served_is_made_anew(stored: Stored) -> None:
    assert "made" == step(stored, NEVER)[0]


def test_one_that_is_over_is_made_anew_at_once() -> None:
    assert "made" == step(made(), timedelta(days=91))[0]


def test_one_for_another_service_is_made_anew() -> None:
    assert "made" == step(made(), NEVER, hosts=hosts_of("dyn", "other"))[0]


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
        is_over = (
            usable_until(here.stored.serving, here.stored.authorities, HOSTS, here.now) is None
        )
        late = any(
            usable_until(each.serving, here.bundle, HOSTS, here.now) is None
            for each in here.replicas
        )
        if is_over or late:
            return  # no replica reconciled it for a third of its life
        assert here.everybody_fits()
