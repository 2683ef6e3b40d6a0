"""Read the settings from flags, the settings file and the environment, in this order of precedence.

All problems are reported at once: an administrator must not need one restart per mistake.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from dynamo_graphs.files.yaml_reader import Document, documents
from dynamo_graphs.settings import Section, SettingField, Settings, fields
from dynamo_operator.cli import values
from dynamo_operator.observability.server import listen_address
from kube_runtime.errors import ConfigError

DEVEL = "zap-devel"
"""The flag that sets level and format unless other flags set them."""

_LEVEL = "logging.level"
_FORMAT = "logging.format"
_INT32 = 2**31 - 1
"""The largest number that a field of a pod takes."""

_S = TypeVar("_S", bound=Section)


def read_settings(
    flags: Mapping[str, str],
    *,
    file: Path | None = None,
    environment: Mapping[str, str],
) -> Settings:
    """Merge flags (by name, as text), file and environment into settings.

    Raises: ExceptionGroup of ConfigError, one for each problem.
    """
    problems: list[ConfigError] = []
    setting_values = _from_environment(environment, problems)
    if file is not None:
        setting_values |= _from_file(file, problems)
    setting_values |= _from_development(flags.get(DEVEL, ""), problems)
    setting_values |= _from_flags(flags, problems)
    settings = _settings(setting_values)
    problems += _bad_addresses(settings)
    problems += (ConfigError(source, message) for source, message in _contradictions(settings))
    if problems:
        raise ExceptionGroup("settings", problems)
    return settings


def _from_file(file: Path, problems: list[ConfigError]) -> dict[str, object]:
    """The values in a settings file by key; mistakes are added to `problems`."""
    try:
        yaml_documents = documents(str(file), text_of(file))
    except ConfigError as error:
        problems.append(error)
        return {}
    except ExceptionGroup as group:
        mistakes, bugs = group.split(ConfigError)
        if bugs is not None or mistakes is None:
            raise
        problems += (error for error in mistakes.exceptions if isinstance(error, ConfigError))
        return {}
    if len(yaml_documents) > 1:
        problems.append(
            ConfigError(yaml_documents[1].place(""), "expected one document in a settings file")
        )
    return _from_document(yaml_documents[0], problems) if yaml_documents else {}


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


def _from_document(document: Document, problems: list[ConfigError]) -> dict[str, object]:
    by_key = {field.key: field for field in fields()}
    setting_values = {}
    for key, value in _flattened(document.value, "", by_key):
        place = document.place(key)
        field = by_key.get(key)
        if field is None:
            hint = values.nearest(key, tuple(by_key))
            problems.append(ConfigError(place, f"unknown setting {key}{hint}"))
            continue
        try:
            setting_values[key] = values.from_yaml(field, value)
        except ValueError as error:
            problems.append(ConfigError(place, f"{key}: {error}"))
    return setting_values


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


def _from_flags(flags: Mapping[str, str], problems: list[ConfigError]) -> dict[str, object]:
    by_flag = {name: field for field in fields() for name in field.setting.flags}
    texts = {f"--{name}": (by_flag[name], text) for name, text in flags.items() if name in by_flag}
    return _from_texts(texts, problems)


def _from_environment(
    environment: Mapping[str, str], problems: list[ConfigError]
) -> dict[str, object]:
    texts = {
        field.setting.environment: (field, text)
        for field in fields()
        if field.setting.environment and (text := environment.get(field.setting.environment))
    }
    return _from_texts(texts, problems)


def _from_texts(
    texts: Mapping[str, tuple[SettingField, str]], problems: list[ConfigError]
) -> dict[str, object]:
    setting_values = {}
    for source, (field, text) in texts.items():
        try:
            setting_values[field.key] = values.from_text(field, text)
        except ValueError as error:
            problems.append(ConfigError(source, str(error)))
    return setting_values


def _from_development(text: str, problems: list[ConfigError]) -> dict[str, object]:
    if not text:
        return {}
    try:
        is_development = values.boolean(text)
    except ValueError as error:
        problems.append(ConfigError("--zap-devel", str(error)))
        return {}
    if is_development:
        return {_LEVEL: "debug", _FORMAT: "console"}
    return {_LEVEL: "info", _FORMAT: "json"}


def _settings(setting_values: Mapping[str, object]) -> Settings:
    settings = Settings()
    for field in fields():
        if field.key in setting_values:
            settings = _replaced(settings, field.path, setting_values[field.key])
    return settings


def _replaced(section: _S, path: Sequence[str], value: object) -> _S:
    """The section with another value at that path."""
    name, *inner = path
    if inner:
        value = _replaced(getattr(section, name), inner, value)
    return msgspec.structs.replace(section, **{name: value})


def _bad_addresses(settings: Settings) -> Iterator[ConfigError]:
    for source, address in (
        ("metrics.bindAddress", settings.metrics.bind_address),
        ("health.bindAddress", settings.health.bind_address),
        ("webhooks.bindAddress", settings.webhooks.bind_address),
    ):
        try:
            listen_address(source, address)
        except ConfigError as error:
            yield error


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Values that are out of range or contradict each other, each with its setting."""
    url = settings.render.model_express_url
    if url and not _is_url(url):
        yield "modelExpressUrl", f"expected a URL such as http://model-express:8001, got {url!r}"
    if not 1 <= settings.render.worker_liveness_failures <= _INT32:
        yield "workerLivenessFailures", f"must be from 1 to {_INT32}"
    if not 0 <= settings.render.worker_drain_period_seconds <= _INT32:
        yield "workerDrainPeriod", f"must be from 0 to {_INT32}"
    if settings.render.largest_object_bytes < 0:
        yield "largestObjectBytes", "must not be negative (0 means no limit)"
    if settings.resync_period_seconds < 1:
        yield "resyncPeriod", "must be at least 1s"
    election = settings.leader_election
    if election.enabled and not election.id:
        yield "leaderElection.id", "missing (leader election is on)"
    durations = (
        int(election.lease_duration_seconds),  # a Lease has whole seconds
        election.renew_deadline_seconds,
        election.retry_period_seconds,
    )
    if not durations[0] > durations[1] > durations[2] > 0:
        order = "leaseDuration > renewDeadline > retryPeriod > 0"
        yield "leaderElection", f"expected {order}, got {_listed(durations)}"
    if settings.webhooks.certificate_life_seconds <= 0:
        yield "webhooks.certificateLife", "must be more than 0"
    scope = (
        settings.namespace_scope.lease_duration_seconds,
        settings.namespace_scope.renew_interval_seconds,
    )
    if not scope[0] > scope[1] > 0:
        yield "namespaceScope", f"expected leaseDuration > renewInterval > 0, got {_listed(scope)}"


def _listed(seconds: tuple[float, ...]) -> str:
    return " and ".join(f"{duration:g}s" for duration in seconds)


def _is_url(text: str) -> bool:
    """Whether Go's net/url parses it: a host without scheme passes, one with a port does not."""
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        return False
    return not any(character.isspace() for character in text) and bool(
        scheme or ":" not in text.partition("/")[0]
    )
