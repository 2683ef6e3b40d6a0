"""Values of settings are read as Go's flag package reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.process.flags import (
    boolean,
    duration_seconds,
    from_text,
    from_yaml,
    read_settings,
)
from dynamo_operator.settings import SettingField, fields

FIELDS = {field.key: field for field in fields()}


@pytest.mark.parametrize(
    ("texts", "value"), [("1 t T true TRUE True", True), ("0 f F false FALSE False", False)]
)
def test_booleans_have_six_spellings(texts: str, value: bool) -> None:
    assert {value} == set(map(boolean, texts.split()))


@pytest.mark.parametrize("text", ["", "yes", "on", "tRUE", "2"])
def test_other_texts_are_no_booleans(text: str) -> None:
    with pytest.raises(ValueError, match="expected true or false"):
        boolean(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("15m", 900),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        (".5h", 1800),
        ("1m0s", 60),
        ("100ms", 0.1),
        ("7us", 7e-6),
        ("7µs", 7e-6),
        ("3ns", 3e-9),
        ("-2s", -2),
        ("+2s", 2),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert seconds == pytest.approx(duration_seconds(text))


@pytest.mark.parametrize("text", ["", "15", "m", "1h 30m", "15 m", "1d", "1m-2s", ".s", "0x1s", "--1s"])
def test_these_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        duration_seconds(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert hours * 3600 + minutes * 60 + seconds == duration_seconds(f"{hours}h{minutes}m{seconds}s")


def test_a_misspelt_choice_is_named_with_the_nearest_one() -> None:
    message = "expected one of kubernetes, etcd, got 'kubernets'; did you mean \"kubernetes\"?"
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        from_text(FIELDS["discoveryBackend"], "kubernets")


@pytest.mark.parametrize(
    ("word", "level"),
    [("0", "info"), ("1", "debug"), ("5", "debug"), ("panic", "error"), ("info", "info")],
)
def test_levels_of_zap_have_a_level_here(word: str, level: str) -> None:
    assert level == from_text(FIELDS["logging.level"], word)


def test_a_delay_that_must_be_whole_seconds_is_not_rounded() -> None:
    with pytest.raises(ValueError, match="whole seconds"):
        from_text(FIELDS["groveTerminationDelay"], "1500ms")


@pytest.mark.parametrize(
    ("key", "value", "expectation"),
    [
        ("metrics.secure", "true", "expected true or false, got 'true'"),
        ("natsAddress", 4222, "expected a string, got 4222"),
        ("natsAddress", ["a"], "expected a string, got a list"),
        ("groveTerminationDelay", 900, "expected a duration such as 15m, got 900"),
        ("kubeconfig", None, "expected a string, got nothing"),
    ],
)
def test_a_file_must_have_the_right_types(key: str, value: object, expectation: str) -> None:
    with pytest.raises(ValueError, match=expectation):
        from_yaml(FIELDS[key], value)


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_only_a_text_may_be_empty(field: SettingField) -> None:
    if field.type_ is str:
        assert from_text(field, "") == ""
    else:
        with pytest.raises(ValueError, match="expected"):
            from_text(field, "")


@pytest.mark.parametrize("text", ["", "x", "1.5", "true"])
def test_what_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(ExceptionGroup) as problems:
        read_settings({"model-calls-at-once": text}, environment={})
    assert "expected a whole number" in str(problems.value.exceptions[0])
