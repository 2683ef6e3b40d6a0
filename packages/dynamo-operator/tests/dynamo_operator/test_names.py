"""Names: what fits stays, what does not is made to fit, the same way every time."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynamo_operator import names

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{DNS_LABEL.pattern}(\.{DNS_LABEL.pattern})*")
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
TEXTS = st.text(max_size=300) | st.from_regex(r"\A[A-Za-z0-9._-]{1,300}\Z")


@pytest.mark.parametrize(
    ("graph", "service", "name"),
    [
        ("chat", "Frontend", "chat-frontend"),
        ("chat", "VllmDecodeWorker", "chat-vllmdecodeworker"),
        ("qwen3-0.6b", "Frontend", "qwen3-0-6b-frontend"),
        ("chat", "My_Service", "chat-my-service"),
        ("70b", "W", "70b-w"),
    ],
)
def test_a_component_is_named_after_graph_and_service(graph: str, service: str, name: str) -> None:
    assert name == names.component_name(graph, service)


@given(TEXTS)
@example("")
@example("...")
@example("-")
@example("ümlaut")
def test_a_label_a_subdomain_and_a_value_always_fit(text: str) -> None:
    label, subdomain, value = (names.dns_label(text), names.dns_subdomain(text), names.label_value(text))
    assert DNS_LABEL.fullmatch(label)
    assert len(label) <= 63
    assert SUBDOMAIN.fullmatch(subdomain)
    assert len(subdomain) <= 253
    assert VALUE.fullmatch(value)
    assert len(value) <= 63


@given(st.from_regex(DNS_LABEL, fullmatch=True).filter(lambda text: len(text) <= 63))
def test_a_text_that_fits_stays_as_it_is(text: str) -> None:
    assert text == names.dns_label(text)
    assert text == names.dns_subdomain(text)
    assert text == names.label_value(text)


@given(st.from_regex(r"\A[a-z]{70}\Z"), st.from_regex(r"\A[a-z]{70}\Z"))
def test_two_long_names_do_not_meet(one: str, other: str) -> None:
    assert (one == other) == (names.dns_label(one) == names.dns_label(other))
    assert (one == other) == (names.label_value(one) == names.label_value(other))


@pytest.mark.parametrize("length", range(40, 80))
def test_a_component_of_a_revision_fits_and_keeps_its_revision(length: int) -> None:
    name = names.revision_component_name("g" * length, "decode", "0123abcd")
    assert DNS_LABEL.fullmatch(name)
    assert len(name) <= 63
    assert name.endswith("-0123abcd")


def test_names_stay_forever() -> None:
    assert "x" * 54 + "-d929cdee" == names.dns_label("x" * 80)
    assert "chat-w-d" == names.service_name("chat-w", "-d")
    assert "prod-qwen3-0-6b" == names.dynamo_namespace("prod", "qwen3-0.6b")
    assert "dynamo-model-fb68f5a6" == names.model_service_name("Qwen/Qwen3-0.6B")
    assert "8a58cea0" == names.model_hash("acme/chat-7b")
    assert "models" == names.volume_name("models")
    assert "with-dots-fdace7ed" == names.volume_name("with.dots")
