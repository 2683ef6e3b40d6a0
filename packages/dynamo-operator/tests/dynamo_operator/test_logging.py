"""Logs are lines of their format, from any library, and contain no secrets."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from dynamo_operator.observability import (
    BURST,
    REDACTED,
    REMEMBERED_LIMIT,
    TEXT_LIMIT,
    LinesPerObject,
    configure,
    redacted,
    written,
)
from dynamo_operator.settings import LogFormat, LoggingSettings, TimeFormat


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _bug() -> None:
    local = "kept for " + "oneself"
    raise KeyError(len(local))


def _log_a_bug() -> None:
    try:
        _bug()
    except KeyError:
        structlog.get_logger("ours").exception("reconcile failed")


def test_entries_of_structlog_and_of_libraries_look_the_same() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    structlog.get_logger("ours").info("hello", size=1)
    logging.getLogger("theirs").warning("hello %s", "you")
    ours, theirs = entries(stream)
    assert ["timestamp", "level", "logger", "message", "size"] == list(ours)
    assert ("info", "ours", "hello") == (ours["level"], ours["logger"], ours["message"])
    assert ("warning", "theirs", "hello you") == (theirs["level"], theirs["logger"], theirs["message"])


def test_what_is_less_severe_than_the_level_is_not_logged() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json", level="warning"), stream)
    structlog.get_logger("ours").info("no")
    logging.getLogger("theirs").info("no")
    structlog.get_logger("ours").warning("yes")
    assert ["yes"] == [entry["message"] for entry in entries(stream)]


def test_without_a_terminal_auto_means_json() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(), stream)
    structlog.get_logger("ours").info("hello")
    assert "hello" == entries(stream)[0]["message"]


def test_the_console_has_no_colour_without_a_terminal() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="console"), stream)
    structlog.get_logger("ours").info("hello", size=1)
    assert "hello" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_bug_is_logged_with_its_traceback_without_local_variables(form: LogFormat) -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format=form), stream)
    _log_a_bug()
    assert "KeyError" in stream.getvalue()
    assert "kept for oneself" not in stream.getvalue()
    if form == "json":
        (entry,) = entries(stream)
        assert "KeyError" == entry["exception"][0]["exc_type"]


@pytest.mark.parametrize(
    "key", ["token", "bearerToken", "password", "secret", "Authorization", "api_key", "privateKey"]
)
def test_what_sounds_secret_is_cut_out(key: str) -> None:
    assert {key: REDACTED} == redacted(None, "", {key: "abc"})
    assert {"outer": [{key: REDACTED}]} == redacted(None, "", {"outer": [{key: "abc"}]})


@pytest.mark.parametrize("key", ["secretName", "envFromSecret", "pull_secret_names", "tokenCount"])
def test_names_of_secrets_are_no_secrets(key: str) -> None:
    assert {key: "abc"} == redacted(None, "", {key: "abc"})


def test_values_of_environment_variables_are_cut_out() -> None:
    entry = {"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"fieldRef": {}}}]}
    assert {
        "env": [{"name": "A", "value": REDACTED}, {"name": "B", "valueFrom": {"fieldRef": {}}}]
    } == redacted(None, "", entry)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("rfc3339", "2023-11-14T22:13:20Z"),
        ("rfc3339nano", "2023-11-14T22:13:20.012345678Z"),
        ("iso8601", "2023-11-14T22:13:20.012Z"),
        ("epoch", 1700000000.0123456),
        ("millis", 1700000000012.3457),
        ("nano", 1700000000012345678),
    ],
)
def test_times_are_written_as_zap_does(form: TimeFormat, expected: object) -> None:
    assert expected == written(1700000000012345678, form)


def test_a_name_with_a_secret_in_its_middle_is_logged() -> None:
    assert re.search("hf-token", str(redacted(None, "", {"name": "hf-token-secret"})))


def lines_about(limit: LinesPerObject, key: str, count: int, method: str = "info") -> list[EventDict]:
    """The entries that are written of so many about one object."""
    found = list[EventDict]()
    for _ in range(count):
        with suppress(structlog.DropEvent):
            entry = {"event": "x", "namespace": "default", "key": key}
            found.append(limit(None, method, entry))
    return found


def test_an_object_that_says_too_much_is_cut_short_and_others_are_not() -> None:
    now = 0.0
    limit = LinesPerObject(lambda: now)
    assert BURST == len(lines_about(limit, "default/loud", BURST + 7))
    assert 1 == len(lines_about(limit, "default/quiet", 1))
    assert 1 == len(lines_about(limit, "default/loud", 1, "debug"))
    now = 1.0
    (line,) = lines_about(limit, "default/loud", 1)
    assert 7 == line["dropped"]
    now = 2.0
    (line,) = lines_about(limit, "default/loud", 1)
    assert "dropped" not in line


def test_an_object_that_is_forgotten_does_not_take_the_number_of_its_lines_along() -> None:
    limit = LinesPerObject(lambda: 0.0)
    lines_about(limit, "default/loud", BURST + 7)
    with capture_logs() as logged:
        for number in range(REMEMBERED_LIMIT):
            lines_about(limit, f"default/{number}", 1)
    assert [("default/loud", 7)] == [(each["object"], each["dropped"]) for each in logged]


def test_lines_about_no_object_are_never_dropped() -> None:
    limit = LinesPerObject(lambda: 0.0)
    for _ in range(2 * BURST):
        assert limit(None, "info", {"event": "ready"})


def test_an_object_that_says_too_much_is_cut_short_in_the_stream() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    for _ in range(BURST + 50):
        structlog.get_logger("ours").info("x", key="default/loud")
    assert BURST <= len(entries(stream)) < BURST + 50


@pytest.mark.parametrize("form", ["json", "console"])
def test_text_of_users_cannot_forge_lines_or_rule_a_terminal(form: LogFormat) -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format=form), stream)
    evil = 'x"\n{"level": "error"}\x1b[2J\u202e'
    structlog.get_logger("ours").warning(evil, error=evil, conditions=[evil])
    assert 1 == len(stream.getvalue().splitlines())
    assert stream.getvalue().rstrip("\n").isprintable()
    assert "\\u001b" not in stream.getvalue()


def test_texts_are_cut() -> None:
    stream = io.StringIO()
    configure(LoggingSettings(format="json"), stream)
    structlog.get_logger("ours").warning("w" * 10_000, error="e " * 10_000)
    (line,) = entries(stream)
    assert TEXT_LIMIT == len(line["message"])
    assert len(line["error"]) <= TEXT_LIMIT
