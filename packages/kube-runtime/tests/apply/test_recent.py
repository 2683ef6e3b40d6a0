"""Only objects that are still queried are remembered."""

from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.status import Recent

LIMIT = 3


def held(recent: Recent[int], *keys: str) -> list[str]:
    """Those of the keys that are remembered. To ask is to use, so each `recent` is asked once."""
    return [each for each in keys if recent.get(each) is not None]


def test_what_was_asked_for_outlives_what_was_put_after_it() -> None:
    recent = Recent[int](LIMIT)
    for value, key in enumerate("abc"):
        recent.put(key, value)
    assert recent.get("a") == 0
    recent.put("d", 3)
    assert ["a", "c", "d"] == held(recent, "a", "b", "c", "d")


def test_what_was_put_again_outlives_what_was_put_after_it() -> None:
    recent = Recent[int](LIMIT)
    for key in "abca":
        recent.put(key, 1)
    recent.put("d", 1)
    assert ["a", "c", "d"] == held(recent, "a", "b", "c", "d")


def test_to_ask_for_what_is_not_remembered_changes_nothing() -> None:
    recent = Recent[int](LIMIT)
    for key in "abc":
        recent.put(key, 1)
    assert recent.get("x") is None
    recent.forget("x")
    assert ["a", "b", "c"] == held(recent, "a", "b", "c", "x")
    assert LIMIT == len(recent)


def test_what_is_forgotten_makes_room() -> None:
    recent = Recent[int](LIMIT)
    for key in "abc":
        recent.put(key, 1)
    recent.forget("b")
    recent.put("d", 1)
    assert ["a", "c", "d"] == held(recent, "a", "b", "c", "d")


STEPS = st.tuples(st.sampled_from(["put", "put", "get", "get", "forget"]), st.integers(0, 4))


@given(st.lists(STEPS, min_size=20))
def test_the_last_keys_in_use_are_remembered_and_no_more(steps: list[tuple[str, int]]) -> None:
    recent = Recent[int](LIMIT)
    in_use: list[int] = []
    for number, (act, key) in enumerate(steps):
        is_known = key in in_use
        if act == "put":
            recent.put(key, number)
        elif act == "forget":
            recent.forget(key)
        else:
            assert is_known == (recent.get(key) is not None)
        if is_known:
            in_use.remove(key)
        if act == "put" or (act == "get" and is_known):
            in_use = [*in_use, key][-LIMIT:]
    assert len(in_use) == len(recent)
    assert all(recent.get(key) is not None for key in in_use)
