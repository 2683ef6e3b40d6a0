"""How the operator logs."""

from typing import Annotated, Literal, TypeAlias

from dynamo_graphs.settings.declare import Section, Setting

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "console", "json"]
TimeFormat: TypeAlias = Literal["rfc3339", "rfc3339nano", "iso8601", "epoch", "millis", "nano"]


def _level(word: str) -> str:
    """Our name of a level that zap knows: a verbosity such as `2`, `warn` or `panic`."""
    if word.isdecimal():
        return "debug" if int(word) else "info"
    return {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}.get(
        word, word
    )


class LoggingSettings(Section, frozen=True, kw_only=True):
    """Logs, on standard error."""

    level: Annotated[
        Level,
        Setting(
            "Log entries of this level and above.",
            ("log-level", "zap-log-level"),
            environment="LOG_LEVEL",
            spelling=_level,
        ),
    ] = "info"
    format: Annotated[
        LogFormat,
        Setting(
            "Format log entries: `console` for people, `json` for machines, `auto` picks console "
            "on a terminal and json elsewhere.",
            ("log-format", "zap-encoder"),
        ),
    ] = "auto"
    time_format: Annotated[
        TimeFormat,
        Setting("Format timestamps of log entries.", ("log-time-format", "zap-time-encoding")),
    ] = "rfc3339"
