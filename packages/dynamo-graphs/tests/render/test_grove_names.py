"""Names under a PodCliqueSet fit Grove, and stay what they are wherever they did fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.names import grove_names

TEXTS = st.text(st.sampled_from("abcXYZ019.-_"), min_size=1, max_size=70).filter(
    lambda text: any(each.isalnum() for each in text)
)


@pytest.mark.parametrize(
    ("graph", "services", "expected"),
    [
        ("chat", {"Frontend": False, "Decode": True}, ("chat", "frontend", "decode")),
        ("a" * 37, {"frontend": False}, ("a" * 37, "frontend")),
        ("qwen3-0.6b", {"w_x": False}, ("qwen3-0-6b", "w-x")),
        ("chat", {"w" * 60: False}, ("chat", f"{'w' * 32}-e0bd8d50")),
    ],
)
def test_examples(graph: str, services: dict[str, bool], expected: tuple[str, ...]) -> None:
    names = grove_names(graph, services)
    assert expected == (names.set, *(names.services[key] for key in services))


def test_a_service_is_shortened_before_the_set_is() -> None:
    names = grove_names("a" * 20, {"decode-of-a-long-name": True})
    assert "a" * 20 == names.set
    assert 10 == len(names.services["decode-of-a-long-name"])


def test_the_set_is_shortened_when_a_service_could_not_fit_beside_it() -> None:
    names = grove_names("a" * 40, {"frontend": False})
    assert 23 == len(names.set)
    assert "frontend" == names.services["frontend"]


def test_a_live_object_is_named_by_grove() -> None:
    assert "chat-0-frontend" == grove_names("chat", {"Frontend": False}).child("Frontend")


@given(TEXTS, st.dictionaries(TEXTS, st.booleans(), min_size=1, max_size=4))
def test_every_name_fits(graph: str, services: dict[str, bool]) -> None:
    names = grove_names(graph, services)
    for key, is_multinode in services.items():
        part = len(names.services[key])
        pods = 2 * part + len("-ldr") if is_multinode else part
        assert len(names.set) + pods <= 45


@given(TEXTS, st.dictionaries(TEXTS, st.booleans(), min_size=1, max_size=4))
def test_a_name_depends_on_nothing_but_the_graph(graph: str, services: dict[str, bool]) -> None:
    turned = dict(reversed(services.items()))
    assert grove_names(graph, services) == grove_names(graph, turned)
