"""A text that is too long keeps its beginning, and says how much is missing."""

from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.types.meta import cut, fitted

words = st.text(st.sampled_from("ab ,"), max_size=60)


def test_texts_that_fit_are_joined() -> None:
    assert "a; b" == fitted(["a", "b"], 4)
    assert "" == fitted([], 4)
    assert "a | b" == fitted(["a", "b"], 10, between=" | ")


def test_what_does_not_fit_is_counted() -> None:
    texts = ["first " * 10, "second " * 30, "third", "fourth"]
    found = fitted(texts, 200)
    assert found.startswith(texts[0])
    assert found.endswith("second… (and 2 more)")
    assert found == fitted([*texts[:2], "another", "one"], 200)


def test_too_little_room_is_not_used_for_half_a_text() -> None:
    assert "a" * 100 + " (and 1 more)" == fitted(["a" * 100, "b" * 100], 150)


def test_a_text_is_cut_after_a_word() -> None:
    assert "one two…" == cut("one two, three", 12)
    assert "aaaa…" == cut("a" * 9, 5)
    assert "short" == cut("short", 5)


@given(st.lists(words, max_size=12), st.integers(60, 300))
def test_it_fits_and_begins_as_the_first_text_does(texts: list[str], limit: int) -> None:
    found = fitted(texts, limit)
    assert len(found) <= limit
    if texts:
        assert found.startswith(texts[0][:20].rstrip(" ,;:"))
