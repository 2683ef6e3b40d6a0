"""Settings come from flags, file and environment, and every mistake is reported at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from dynamo_operator.process.flags import read_settings
from dynamo_operator.settings import SettingField, Settings, fields

NO_ENVIRONMENT: Mapping[str, str] = {}


def settings_of(
    text: str,
    tmp_path: Path,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = NO_ENVIRONMENT,
) -> Settings:
    file = tmp_path / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    return read_settings(flags or {}, file=file, environment=environment)


def lines(group: ExceptionGroup[Exception], tmp_path: Path) -> list[str]:
    return [str(error).replace(f"{tmp_path}/", "") for error in group.exceptions]


def test_nothing_given_is_the_defaults() -> None:
    assert Settings() == read_settings({}, environment=NO_ENVIRONMENT)


def test_flags_beat_file_beats_environment_beats_default(tmp_path: Path) -> None:
    environment = {"INTERNAL_IMAGES_DEBUGGER": "environment"}
    flags = {"debugger-image": "flag"}
    file = "debuggerImage: file\n"

    def image(settings: Settings) -> str:
        return settings.render.debugger_image

    assert "flag" == image(settings_of(file, tmp_path, flags, environment))
    assert "file" == image(settings_of(file, tmp_path, None, environment))
    assert "environment" == image(settings_of("", tmp_path, None, environment))
    assert "python:3.12-slim" == image(settings_of("", tmp_path))


def test_sections_nest(tmp_path: Path) -> None:
    text = "leaderElection:\n  enabled: true\n  leaseDuration: 1m\nmetrics:\n"
    settings = settings_of(text, tmp_path)
    assert settings.leader_election.enabled
    assert 60.0 == settings.leader_election.lease_duration_seconds


def test_unknown_keys_are_errors_with_place_and_nearest_match(tmp_path: Path) -> None:
    text = "natsAdress: x\nleaderElection:\n  enabld: true\nmetrics: 3\n"
    with pytest.raises(ExceptionGroup) as caught:
        settings_of(text, tmp_path)
    assert [
        'settings.yaml:1:1: unknown setting natsAdress; did you mean "natsAddress"?',
        'settings.yaml:3:3: unknown setting leaderElection.enabld; did you mean "leaderElection.enabled"?',
        'settings.yaml:4:1: unknown setting metrics; did you mean "metrics.secure"?',
    ] == lines(caught.value, tmp_path)


def test_mistakes_of_all_sources_are_reported_together(tmp_path: Path) -> None:
    flags = {"leader-elect": "maybe", "grove-termination-delay": "15"}
    with pytest.raises(ExceptionGroup) as caught:
        settings_of("probeProfile: htp\n", tmp_path, flags)
    choice = """expected one of http, documented, got 'htp'; did you mean "http"?"""
    assert [
        f"settings.yaml:1:1: probeProfile: {choice}",
        "--leader-elect: expected true or false, got 'maybe'",
        "--grove-termination-delay: expected a duration such as 15m or 1h30m, got '15'",
    ] == lines(caught.value, tmp_path)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("natsAddress: a\nnatsAddress: b\n", "settings.yaml:2:1: duplicate key 'natsAddress'"),
        (
            "natsAddress: a\n---\netcdAddress: b\n",
            "settings.yaml:3:1: expected one document in a settings file",
        ),
    ],
)
def test_a_second_key_or_document_is_an_error(text: str, mistake: str, tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        settings_of(text, tmp_path)
    assert [mistake] == lines(caught.value, tmp_path)


@pytest.mark.parametrize("text", ["- a\n", "3\n"])
def test_a_file_that_is_no_mapping_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup, match="settings"):
        settings_of(text, tmp_path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read_settings({}, file=tmp_path / "none", environment=NO_ENVIRONMENT)
    assert ["none: No such file or directory"] == lines(caught.value, tmp_path)


@pytest.mark.parametrize(
    ("flags", "blamed"),
    [
        ({"model-express-url": "10.0.0.1:8001"}, "modelExpressUrl"),
        ({"model-express-url": "http://a b"}, "modelExpressUrl"),
        ({"model-express-url": "http://[::1"}, "modelExpressUrl"),
        ({"leader-elect": "true", "leader-election-id": ""}, "leaderElection.id"),
        ({"leader-election-renew-deadline": "20s"}, "leaderElection"),
        (
            {
                "leader-election-lease-duration": "10.9s",
                "leader-election-renew-deadline": "10.5s",
            },
            "leaderElection",
        ),
        ({"namespace-scope-lease-duration": "10s"}, "namespaceScope"),
        ({"namespace-scope-lease-renew-interval": "0"}, "namespaceScope"),
        ({"metrics-bind-address": "8080"}, "metrics.bindAddress"),
        ({"health-probe-bind-address": ":http"}, "health.bindAddress"),
        ({"webhook-bind-address": "9443"}, "webhooks.bindAddress"),
        ({"webhook-certificate-life": "0s"}, "webhooks.certificateLife"),
        ({"resync-period": "0"}, "resyncPeriod"),
        ({"worker-liveness-failures": "0"}, "workerLivenessFailures"),
        ({"worker-liveness-failures": "2147483648"}, "workerLivenessFailures"),
        ({"worker-drain-period": "2147483648s"}, "workerDrainPeriod"),
        ({"largest-object-bytes": "-1"}, "largestObjectBytes"),
        ({"model-calls-at-once": "0"}, "models.callsAtOnce"),
        ({"model-call-timeout": "0s"}, "models.callTimeout"),
    ],
)
def test_values_that_fit_no_server_or_each_other_are_refused(flags: dict[str, str], blamed: str) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read_settings(flags, environment=NO_ENVIRONMENT)
    assert [blamed] == [str(error).partition(": ")[0] for error in caught.value.exceptions]


@pytest.mark.parametrize("url", ["http://mx:8001", "model-express:8001", "model-express"])
def test_what_go_parses_as_a_url_is_one(url: str) -> None:
    settings = read_settings({"model-express-url": url}, environment=NO_ENVIRONMENT)
    assert url == settings.render.model_express_url


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"zap-devel": "true"}, ("debug", "console")),
        ({"zap-devel": "false"}, ("info", "json")),
        ({"zap-devel": "true", "log-format": "json"}, ("debug", "json")),
        ({}, ("info", "auto")),
    ],
)
def test_zap_devel_chooses_what_no_flag_chooses(flags: dict[str, str], expected: tuple[str, str]) -> None:
    logging = read_settings(flags, environment=NO_ENVIRONMENT).logging
    assert expected == (logging.level, logging.format)


def test_every_setting_can_be_given_by_flag_and_by_file(tmp_path: Path) -> None:
    for field in fields():
        text = _sample(field)
        flag = {field.flags[0]: text}
        by_flag = read_settings(flag, environment=NO_ENVIRONMENT)
        *sections, key = field.key.split(".")
        indent = "".join(f"{section}:\n  " for section in sections)
        by_file = settings_of(f"{indent}{key}: {text}\n", tmp_path)
        assert by_flag == by_file
        assert Settings() != by_flag, field.key


def _sample(field: SettingField) -> str:
    """A value that is not the default, as text."""
    if field.key.endswith("bindAddress"):
        return "127.0.0.1:1"
    if isinstance(field.default, bool):
        return str(not field.default).lower()
    if isinstance(field.default, int | float):
        return f"{field.default + 1:.0f}{'s' if field.is_duration else ''}"
    return next((each for each in get_args(field.type_) if each != field.default), "x")
