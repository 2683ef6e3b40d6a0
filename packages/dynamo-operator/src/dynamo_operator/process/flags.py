"""The flags of `dynamo-operator`, in the syntax of Go's flag package, and the settings that they mean.

Command lines of the reference operator must work unchanged. Go accepts `-flag` for `--flag`, a boolean
without value, any token as the value of another flag, and the last of several. cyclopts does not, so
`canonical` rewrites arguments to `--flag=value` first. cyclopts handles help, commands and unknown flags
(`process/main.py`): who only reads the flags of a running operator does not need it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

import msgspec

from dynamo_operator.documents import Document, documents
from dynamo_operator.settings import Section, SettingField, Settings, fields, listen_address
from dynamo_operator.shared.problems import nearest
from kube_runtime.errors import ConfigError, ConfigErrors, leaves

_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_ZAP_LEVELS = {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}


def from_text(field: SettingField, text: str) -> object:
    """Parse the text of a flag or an environment variable.

    Raises: ValueError; the message says what is expected.
    """
    if field.is_duration:
        seconds = duration_seconds(text)
        if field.type_ is float:
            return seconds
        if seconds != int(seconds):
            raise ValueError(f"expected whole seconds, got {text!r}")
        return int(seconds)
    if field.type_ is bool:
        return boolean(text)
    if field.type_ is int:
        if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            raise ValueError(f"expected a whole number, got {text!r}")
        return int(text)
    if get_origin(field.type_) is not Literal:
        return text
    if field.name == "logging.level":  # zap has verbosities such as `2`, too
        text = ("debug" if int(text) else "info") if text.isdecimal() else _ZAP_LEVELS.get(text, text)
    choices = get_args(field.type_)
    if text not in choices:
        raise ValueError(f"expected {_expectation(field)}, got {text!r}{nearest(text, choices)}")
    return text


def from_yaml(field: SettingField, value: object) -> object:
    """Parse a value of the settings file.

    Raises: ValueError; the message says what is expected.
    """
    expected = str if field.is_duration or field.type_ not in (bool, int) else field.type_
    if type(value) is not expected:
        kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
        raise ValueError(f"expected {_expectation(field)}, got {kinds.get(type(value), repr(value))}")
    return from_text(field, value) if isinstance(value, str) else value


def boolean(text: str) -> bool:
    """Parse a boolean as Go's flag package does.

    Raises: ValueError.
    """
    if text not in _BOOLEANS:
        raise ValueError(f"expected true or false, got {text!r}")
    return _BOOLEANS[text]


def duration_seconds(text: str) -> float:
    """The seconds in a Go duration such as `15m`, `1h30m`, `-1.5s` or `0`.

    Raises: ValueError.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return 0.0
    seconds, at = 0.0, 0
    while part := _PART.match(rest, at):  # a search would restart at every digit
        seconds, at = seconds + float(part[1]) * _UNIT_SECONDS[part[2]], part.end()
    if not rest or at < len(rest):
        raise ValueError(f"expected a duration such as 15m or 1h30m, got {text!r}")
    return sign * seconds


def _expectation(field: SettingField) -> str:
    if field.is_duration:
        return "a duration such as 15m"
    if field.type_ is bool:
        return "true or false"
    if field.type_ is int:
        return "a whole number"
    if get_origin(field.type_) is Literal:
        return "one of " + ", ".join(get_args(field.type_))
    return "a string"


DEVEL = "zap-devel"
"""The flag that sets level and format unless other flags set them."""

_DEVELOPMENT = {
    True: {"logging.level": "debug", "logging.format": "console"},
    False: {"logging.level": "info", "logging.format": "json"},
}
_INT32 = 2**31 - 1
"""The largest number that a field of a pod takes."""

_S = TypeVar("_S", bound=Section)


# All problems are reported at once: an administrator must not need one restart per mistake.
def read_settings(
    flags: Mapping[str, str], *, file: Path | None = None, environment: Mapping[str, str]
) -> Settings:
    """Merge flags (by name, as text), file and environment into settings.

    Raises: ConfigErrors, one for each problem.
    """
    problems: list[ConfigError] = []
    setting_values: dict[str, object] = {}
    by_flag = {name: field for field in fields() for name in field.flags}

    def read(source: str, field: SettingField, text: str) -> None:
        try:
            setting_values[field.key] = from_text(field, text)
        except ValueError as error:
            problems.append(ConfigError(source, str(error)))

    for field in fields():
        if text := environment.get(field.environment):
            read(field.environment, field, text)
    if file is not None:
        setting_values |= _from_file(file, problems)
    if text := flags.get(DEVEL):
        try:
            setting_values |= _DEVELOPMENT[boolean(text)]
        except ValueError as error:
            problems.append(ConfigError(f"--{DEVEL}", str(error)))
    for name, text in flags.items():
        if name in by_flag:
            read(f"--{name}", by_flag[name], text)
    settings = Settings()
    for field in fields():
        if field.key in setting_values:
            settings = _replaced(settings, field.path, setting_values[field.key])
    problems += _contradictions(settings)
    if problems:
        raise ConfigErrors("settings", problems)
    return settings


def _from_file(file: Path, problems: list[ConfigError]) -> dict[str, object]:
    yaml_documents: list[Document] = []
    try:
        yaml_documents = documents(str(file), text_of(file))
    except* ConfigError as group:
        problems += leaves(group)
    if len(yaml_documents) > 1:
        problems.append(ConfigError(yaml_documents[1].place(""), "expected one document in a settings file"))
    by_key = {field.key: field for field in fields()}
    setting_values = {}
    for key, value in _flattened(yaml_documents[0].value, "", by_key) if yaml_documents else ():
        place = yaml_documents[0].place(key)
        if key not in by_key:
            problems.append(ConfigError(place, f"unknown setting {key}{nearest(key, by_key)}"))
            continue
        try:
            setting_values[key] = from_yaml(by_key[key], value)
        except ValueError as error:
            problems.append(ConfigError(place, f"{key}: {error}"))
    return setting_values


def text_of(file: Path) -> str:
    """The text of a file.

    Raises: ConfigError.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(file), error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(file), "expected UTF-8 text") from error


def _flattened(
    value: object, prefix: str, by_key: Mapping[str, SettingField]
) -> Iterator[tuple[str, object]]:
    """The leaves of nested mappings, with dotted keys. Any value but a mapping is a leaf."""
    if not isinstance(value, dict):
        yield prefix, value
        return
    for key, child in value.items():
        path = f"{prefix}.{key}" if prefix else key
        is_section = any(setting_key.startswith(f"{path}.") for setting_key in by_key)
        if is_section and isinstance(child, dict):
            yield from _flattened(child, path, by_key)
        elif not (is_section and child is None):
            yield path, child


def _replaced(section: _S, path: Sequence[str], value: object) -> _S:
    name, *inner = path
    if inner:
        value = _replaced(getattr(section, name), inner, value)
    return msgspec.structs.replace(section, **{name: value})


def _contradictions(settings: Settings) -> Iterator[ConfigError]:
    """Values that are out of range or contradict each other, each with its setting."""
    for source, address in (
        ("metrics.bindAddress", settings.metrics.bind_address),
        ("health.bindAddress", settings.health.bind_address),
        ("webhooks.bindAddress", settings.webhooks.bind_address),
    ):
        try:
            listen_address(source, address)
        except ConfigError as error:
            yield error
    render, election, scope = settings.render, settings.leader_election, settings.namespace_scope
    url, failures, drain = (
        render.model_express_url,
        render.worker_liveness_failures,
        render.worker_drain_period_seconds,
    )
    lease = int(election.lease_duration_seconds)  # a Lease has whole seconds
    deadline, retry = election.renew_deadline_seconds, election.retry_period_seconds
    order = f"leaseDuration > renewDeadline > retryPeriod > 0, got {lease}s and {deadline:g}s and {retry:g}s"
    webhooks = settings.webhooks
    scope_lease, renew = scope.lease_duration_seconds, scope.renew_interval_seconds
    scope_order = f"leaseDuration > renewInterval > 0, got {scope_lease:g}s and {renew:g}s"
    for source, is_valid, message in (
        ("modelExpressUrl", _is_url(url), f"expected a URL such as http://model-express:8001, got {url!r}"),
        ("workerLivenessFailures", 1 <= failures <= _INT32, f"must be from 1 to {_INT32}"),
        ("workerDrainPeriod", 0 <= drain <= _INT32, f"must be from 0 to {_INT32}"),
        ("largestObjectBytes", render.largest_object_bytes >= 0, "must not be negative (0 means no limit)"),
        ("resyncPeriod", settings.resync_period_seconds >= 1, "must be at least 1s"),
        ("leaderElection.id", election.id or not election.enabled, "missing (leader election is on)"),
        ("leaderElection", lease > deadline > retry > 0, f"expected {order}"),
        ("webhooks.certificateLife", webhooks.certificate_life_seconds > 0, "must be more than 0"),
        ("webhooks.clientCa", webhooks.client_ca or not webhooks.client_name, "missing (clientName is set)"),
        ("models.callTimeout", settings.models.call_timeout_seconds > 0, "must be more than 0"),
        ("models.callsAtOnce", settings.models.calls_at_once >= 1, "must be at least 1"),
        ("namespaceScope", scope_lease > renew > 0, f"expected {scope_order}"),
    ):
        if not is_valid:
            yield ConfigError(source, message)


def _is_url(text: str) -> bool:
    """Whether Go's net/url parses it: a host without scheme passes, one with a port does not."""
    try:
        is_absolute = bool(urlsplit(text).scheme)
    except ValueError:
        return False
    return not re.search(r"\s", text) and (is_absolute or ":" not in text.partition("/")[0])


CONFIG = "config"
_GENERAL = "General"
_GROUPS = {
    "render": "Rendering",
    "metrics": "Metrics",
    "health": "Health",
    "leader_election": "Leader election",
    "namespace_scope": "Namespace scope",
    "webhooks": "Webhooks",
    "logging": "Logs",
}
_NO_EFFECT = "Accepted, without effect"
GROUPS = (_GENERAL, *_GROUPS.values(), _NO_EFFECT)
"""The groups of `--help`, in order."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag with all its spellings, the preferred one first. `unused`: why it has no effect."""

    names: tuple[str, ...]
    text: str
    group: str = _GENERAL
    metavar: str = "TEXT"
    default: str = ""
    unused: str = ""

    @property
    def name(self) -> str:
        """The preferred spelling, without dashes."""
        return self.names[0]

    @property
    def identifier(self) -> str:
        """The name of the Python parameter."""
        return self.name.replace("-", "_")

    @property
    def is_boolean(self) -> bool:
        """Whether it may have no value."""
        return self.metavar == "BOOL"


def flags() -> Iterator[Flag]:
    """Every flag, in the order of `--help`."""
    yield Flag((CONFIG,), "Read settings from this YAML file.", metavar="FILE")
    for field in fields():
        text = field.text
        if get_origin(field.type_) is Literal:
            text += f" Choices: {', '.join(f'`{choice}`' for choice in get_args(field.type_))}."
        metavar = "BOOL" if field.type_ is bool else "DURATION" if field.is_duration else "TEXT"
        yield Flag(field.flags, text, _GROUPS.get(field.path[0], _GENERAL), metavar, default_text(field))
    development = "`true` means `--log-level=debug --log-format=console`, `false` means `info` and `json`."
    yield Flag((DEVEL,), f"Log for development: {development}", _GROUPS["logging"], "BOOL")
    for name, metavar, reason in (
        ("enable-http2", "BOOL", "the servers speak HTTP/1.1 only"),
        ("istio-virtual-service-enabled", "BOOL", "name a gateway: `--istio-virtual-service-gateway`"),
        ("virtual-service-supports-https", "BOOL", "no rendered object depends on it"),
        ("zap-stacktrace-level", "TEXT", "only bugs are logged with a traceback"),
    ):
        yield Flag((name,), f"No effect: {reason}.", _NO_EFFECT, metavar, unused=reason)


def canonical(arguments: Sequence[str]) -> list[str]:
    """Rewrite every flag as `--flag=value`, and keep the last of several.

    Other words, unknown flags and everything after `--` stay unchanged, in place. A last flag without its
    value stays so, and cyclopts reports it.
    """
    by_name = {name: flag for flag in flags() for name in flag.names}
    rest = list(arguments)
    # Keyed by identifier, so that a later flag replaces an earlier one.
    tokens: dict[str | int, str] = {}
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*tokens.values(), word, *rest]
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        flag = by_name.get(name) if word.startswith("-") else None
        if flag is None:
            has_one_dash = word[:1] == "-" and word[1:2] != "-"
            is_long = has_one_dash and word[2:3] not in {"", "="}
            tokens[len(rest)] = f"--{name}{equals}{value}" if is_long else word
            continue
        tokens.pop(flag.identifier, None)
        if not equals and not flag.is_boolean and not rest:
            tokens[flag.identifier] = f"--{name}"
            continue
        if not equals:
            value = "true" if flag.is_boolean else rest.pop(0)
        tokens[flag.identifier] = f"--{name}={value}"
    return list(tokens.values())


def given(arguments: Mapping[str, str | None]) -> dict[str, str]:
    """The flags of the command line by preferred name, from the arguments that cyclopts passes."""
    return {flag.name: value for flag in flags() if (value := arguments.get(flag.identifier)) is not None}


def default_text(field: SettingField) -> str:
    """The default as a user would write it; "" when it is empty."""
    value = field.default
    if not field.is_duration:
        return str(value).lower() if isinstance(value, bool) else str(value)
    for unit, size in (("h", 3600), ("m", 60)):
        if value and value % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}s"
