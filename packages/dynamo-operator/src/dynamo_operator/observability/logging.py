"""Structured logs on standard error, one entry per line, without secrets.

Libraries log through `logging`, the operator through structlog; both produce the same lines. Values of
environment variables and of keys that may be secret are redacted, and tracebacks have no local variables.
Texts are cut and lose their control characters, since users and other programs write parts of them. Code
that raises an error keeps secrets out of its message.

Lines about one object are rate-limited, so that an object that fails repeatedly leaves the log readable.
"""

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from dynamo_graphs.settings import LoggingSettings, TimeFormat
from kube_runtime.commandline.errors import visible
from kube_runtime.rate_limits import TokenBucket
from kube_runtime.text import cut

REDACTED = "[redacted]"
TEXT_LIMIT = 2048
"""Most characters of a field: the relevant part of the API server's longest messages."""
BURST, REFILL_SECONDS = 200, 1.0
"""Lines about one object, and the seconds until one more is allowed: creating a graph of fifty
services logs fewer than 200."""
REMEMBERED_LIMIT = 16_384
"""Most objects whose lines are counted; only those of the last `BURST * REFILL_SECONDS` matter."""
_SECRET = re.compile(
    r"(?i)(token|secret|passw(or)?d|authorization|credential|api[-_]?key|private[-_]?key)"
)
_SHORT = 128
_FIRST = (
    *("timestamp", "level", "logger", "message", "reason", "cause"),
    *("controller", "namespace", "graph", "key"),
)
_HARMLESS = re.compile(r"(?i)(name|names|namespace|ref|count|from[-_]?secret|from)$")


def configure(settings: LoggingSettings, stream: TextIO) -> None:
    """Send every entry of structlog and of `logging` to the stream. Called once, at start."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    is_terminal = stream.isatty()
    is_console = settings.format == "console" or (settings.format == "auto" and is_terminal)
    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _Time(settings.time_format),
        redacted,
    ]
    about: Processor = structlog.contextvars.merge_contextvars
    last = _FOR_MACHINES
    if is_console:
        plain = structlog.dev.plain_traceback
        last = (structlog.dev.ConsoleRenderer(colors=is_terminal, exception_formatter=plain),)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[about, structlog.stdlib.ExtraAdder(), *before],
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
            about,
            LinesPerObject(),
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def redacted(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    """Redact values that may be secret. A structlog processor."""
    return {key: _value(key, value) for key, value in entry.items()}


def _ordered(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    first = {key: entry.pop(key) for key in _FIRST if key in entry}
    return {**first, **entry}


_FOR_MACHINES: tuple[Processor, ...] = (
    structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
    structlog.processors.EventRenamer("message"),
    _ordered,
    structlog.processors.JSONRenderer(default=str),
)


def _value(key: str, value: object) -> object:
    if _SECRET.search(key) and not _HARMLESS.search(key) and value is not None:
        return REDACTED
    if isinstance(value, str):
        is_plain = len(value) <= _SHORT and value.isprintable()
        return value if is_plain else visible(cut(value, TEXT_LIMIT))
    if isinstance(value, Mapping):
        if "name" in value and "value" in value:  # an environment variable of a container
            return {**value, "value": REDACTED}
        return {name: _value(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_value("", inner) for inner in value]
    return value


@dataclass(slots=True)
class _Tokens(TokenBucket):
    dropped: int = 0


@dataclass(slots=True)
class LinesPerObject:
    """A structlog processor that drops lines about an object above its rate limit; `debug` lines are exempt.

    The next line that is written has the number of dropped lines in `dropped`.
    """

    clock: Callable[[], float] = time.monotonic
    _objects: OrderedDict[tuple[object, object], _Tokens] = field(
        default_factory=OrderedDict[tuple[object, object], _Tokens]
    )

    def __call__(self, _: WrappedLogger, method: str, entry: EventDict) -> EventDict:
        """Return the entry.

        Raises:
            DropEvent: the object exceeded its limit.
        """
        about = (entry.get("namespace"), entry.get("key") or entry.get("name"))
        if method == "debug" or about[1] is None:
            return entry
        now = self.clock()
        tokens = self._objects.setdefault(about, _Tokens(BURST, now))
        self._objects.move_to_end(about)
        if len(self._objects) > REMEMBERED_LIMIT:
            self._objects.popitem(last=False)
        may_be_written = tokens.take(BURST, REFILL_SECONDS, now)
        self._forget_quiet(now)
        if not may_be_written:
            tokens.dropped += 1
            raise structlog.DropEvent
        if tokens.dropped:
            entry["dropped"], tokens.dropped = tokens.dropped, 0
        return entry

    def _forget_quiet(self, now: float) -> None:
        """Forget up to two objects whose tokens are full again: most are deleted from the cluster."""
        for about, tokens in list(islice(self._objects.items(), 2)):
            if now - tokens.at < BURST * REFILL_SECONDS:
                return
            del self._objects[about]
            if tokens.dropped:
                self._objects[about] = tokens  # the next line must still report the number


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
