"""Structured logs on standard error, one entry per line, without secrets.

Libraries log through `logging`, we through structlog; both end in the same lines. In the fields of an
entry, values of environment variables and of keys that sound secret are removed; and tracebacks come
without local variables. The text of a message or of an error is written as it is: code that raises an error
keeps secrets out of it.
"""

import logging
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from dynamo_graphs.settings import LoggingSettings, TimeFormat

REDACTED = "[redacted]"
_SECRET = re.compile(
    r"(?i)(token|secret|passw(or)?d|authorization|credential|api[-_]?key|private[-_]?key)"
)
_HARMLESS = re.compile(r"(?i)(name|names|namespace|ref|count|from[-_]?secret|from)$")


def configure(settings: LoggingSettings, stream: TextIO) -> None:
    """Sends every entry of structlog and of `logging` to the stream. Called once, at start."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    is_terminal = stream.isatty()
    is_console = settings.format == "console" or (settings.format == "auto" and is_terminal)
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _Time(settings.time_format),
        redacted,
    ]
    last: list[Processor] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=is_terminal, exception_formatter=structlog.dev.plain_traceback
            )
        ]
        if is_console
        else [
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.EventRenamer("message"),
            _ordered,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *before],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def redacted(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    """The entry without the values that may be secret. A structlog processor."""
    return {key: _value(key, value) for key, value in entry.items()}


def _ordered(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    first = {
        key: entry.pop(key) for key in ("timestamp", "level", "logger", "message") if key in entry
    }
    return {**first, **entry}


def _value(key: str, value: object) -> object:
    if _SECRET.search(key) and not _HARMLESS.search(key) and value is not None:
        return REDACTED
    if isinstance(value, Mapping):
        if "name" in value and "value" in value:  # an environment variable of a container
            return {**value, "value": REDACTED}
        return {name: _value(str(name), each) for name, each in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_value("", each) for each in value]
    return value


class _Time:
    """A structlog processor that adds the time in one of zap's formats."""

    def __init__(self, form: TimeFormat) -> None:
        self.form: TimeFormat = form

    def __call__(self, _: WrappedLogger, __: str, entry: EventDict) -> EventDict:
        entry["timestamp"] = written(time.time_ns(), self.form)
        return entry


def written(nanoseconds: int, form: TimeFormat) -> str | float | int:
    """A time since 1970 in one of zap's formats."""
    if form == "epoch":
        return nanoseconds / 1e9
    if form == "millis":
        return nanoseconds / 1e6
    if form == "nano":
        return nanoseconds
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if form == "iso8601":
        return f"{moment}.{rest // 10**6:03}Z"
    return f"{moment}.{rest:09}Z" if form == "rfc3339nano" else f"{moment}Z"
