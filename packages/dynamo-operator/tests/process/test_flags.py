"""Command lines, variables and the settings file mean what they mean to the reference operator."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from dynamo_operator.process.flags import (
    boolean,
    canonical,
    duration_seconds,
    flags,
    from_text,
    from_yaml,
    given,
    read_settings,
)
from dynamo_operator.settings import SettingField, Settings, fields

BOOLEANS = (
    *("leader-elect", "metrics-secure", "enable-http2", "enable-webhooks"),
    *("virtual-service-supports-https", "zap-devel"),
)
TEXTS = (
    *("metrics-bind-address", "health-probe-bind-address", "leader-election-id"),
    *("leader-election-namespace", "restrictedNamespace", "natsAddr", "etcdAddr"),
    *("istio-virtual-service-gateway", "ingress-controller-class-name"),
    *("ingress-controller-tls-secret-name", "ingress-host-suffix", "grove-termination-delay"),
    *("model-express-url", "prometheus-endpoint", "mpi-run-ssh-secret-name"),
    *("mpi-run-ssh-secret-namespace", "planner-cluster-role-name"),
    *("dgdr-profiling-cluster-role-name", "epp-cluster-role-name"),
    *("namespace-scope-lease-duration", "namespace-scope-lease-renew-interval", "operator-version"),
    *("discovery-backend", "zap-encoder", "zap-log-level", "zap-stacktrace-level"),
    *("zap-time-encoding", "kubeconfig"),
)
"""Every flag of the reference operator."""

FIELDS = {field.key: field for field in fields()}


def test_every_flag_of_the_reference_is_known() -> None:
    known = {name: flag.is_boolean for flag in flags() for name in flag.names}
    expected = {**dict.fromkeys(BOOLEANS, True), **dict.fromkeys(TEXTS, False)}
    assert expected == {name: known.get(name) for name in expected}


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_value_may_follow_the_flag_or_an_equals_sign(name: str, dashes: str) -> None:
    assert canonical([f"{dashes}{name}=x"]) == canonical([f"{dashes}{name}", "x"])


@pytest.mark.parametrize("name", BOOLEANS)
def test_a_boolean_needs_no_value_and_takes_none_from_the_next_word(name: str) -> None:
    assert [f"--{name}=true", "run"] == canonical([f"-{name}", "run"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("--natsAddr --leader-elect", "--natsAddr=--leader-elect", id="a value like a flag"),
        pytest.param("--natsAddr a=b --etcdAddr=", "--natsAddr=a=b --etcdAddr=", id="equals sign, nothing"),
        pytest.param("--natsAddr=a -natsAddr b", "--natsAddr=b", id="the last of several"),
        pytest.param("--log-level=info --zap-log-level=2", "--zap-log-level=2", id="two spellings"),
        pytest.param("-leader-elect -- -natsAddr", "--leader-elect=true -- -natsAddr", id="after two dashes"),
        pytest.param(
            "run -leader-elect -h -nats=x",
            "run --leader-elect=true -h --nats=x",
            id="commands and unknown flags",
        ),
        pytest.param("-natsAddr", "--natsAddr", id="a flag without its value"),
    ],
)
def test_a_command_line_is_rewritten_as_go_reads_it(line: str, expected: str) -> None:
    assert expected.split() == canonical(line.split())


def test_rewriting_twice_changes_nothing() -> None:
    once = canonical(["-leader-elect", "run", "-natsAddr", "x", "-zap-devel=false"])
    assert once == canonical(once)


def test_what_is_given_has_the_preferred_name() -> None:
    assert {"log-level": "debug"} == given({"log_level": "debug", "natsAddr": None})


@pytest.mark.parametrize(
    ("texts", "value"), [("1 t T true TRUE True", True), ("0 f F false FALSE False", False)]
)
def test_booleans_have_six_spellings(texts: str, value: bool) -> None:
    assert {value} == set(map(boolean, texts.split()))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 0), ("15m", 900), ("1h30m", 5400), ("1.5s", 1.5), (".5h", 1800), ("1m0s", 60)),
        *(("100ms", 0.1), ("7us", 7e-6), ("7µs", 7e-6), ("3ns", 3e-9), ("-2s", -2), ("+2s", 2)),
    ],
)
def test_go_durations(text: str, seconds: float) -> None:
    assert seconds == pytest.approx(duration_seconds(text))


@generated(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert hours * 3600 + minutes * 60 + seconds == duration_seconds(f"{hours}h{minutes}m{seconds}s")


@pytest.mark.parametrize(
    ("key", "texts", "expectation"),
    [
        ("leaderElection.enabled", ["", "yes", "on", "tRUE", "2"], "expected true or false"),
        ("models.callsAtOnce", ["", "x", "1.5", "true"], "expected a whole number"),
        ("resyncPeriod", ["", "15", "m", "1h 30m", "15 m", "1d"], "expected a duration"),
        ("resyncPeriod", ["1m-2s", ".s", "0x1s", "--1s"], "expected a duration"),
        ("groveTerminationDelay", ["1500ms"], "expected whole seconds"),
        ("discoveryBackend", ["kubernets"], "etcd, got 'kubernets'; did you mean \"kubernetes\"?"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_expected(
    key: str, texts: list[str], expectation: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=re.escape(expectation)):
            from_text(FIELDS[key], text)


@pytest.mark.parametrize(
    ("word", "level"), [("0", "info"), ("1", "debug"), ("5", "debug"), ("panic", "error"), ("info", "info")]
)
def test_levels_of_zap_have_a_level_here(word: str, level: str) -> None:
    assert level == from_text(FIELDS["logging.level"], word)


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


def settings_of(
    text: str,
    tmp_path: Path,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    file = tmp_path / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    return read_settings(flags or {}, file=file, environment=environment or {})


def lines(group: ExceptionGroup[Exception], tmp_path: Path) -> list[str]:
    return [str(error).replace(f"{tmp_path}/", "") for error in group.exceptions]


def test_nothing_given_is_the_defaults() -> None:
    assert Settings() == read_settings({}, environment={})


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


MISTAKES = {
    "natsAdress: x\nleaderElection:\n  enabld: true\nmetrics: 3\n": [
        'settings.yaml:1:1: unknown setting natsAdress; did you mean "natsAddress"?',
        'settings.yaml:3:3: unknown setting leaderElection.enabld; did you mean "leaderElection.enabled"?',
        'settings.yaml:4:1: unknown setting metrics; did you mean "metrics.secure"?',
    ],
    "probeProfile: htp\n": [
        "settings.yaml:1:1: probeProfile: expected one of http, documented, got 'htp'; did you mean \"http\"?"
    ],
    "natsAddress: a\nnatsAddress: b\n": ["settings.yaml:2:1: duplicate key 'natsAddress'"],
    "natsAddress: a\n---\netcdAddress: b\n": ["settings.yaml:3:1: expected one document in a settings file"],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_of_all_sources_are_reported_together_with_their_places(text: str, tmp_path: Path) -> None:
    flags = {"leader-elect": "maybe", "grove-termination-delay": "15"}
    with pytest.raises(ExceptionGroup) as caught:
        settings_of(text, tmp_path, flags)
    assert [
        *MISTAKES[text],
        "--leader-elect: expected true or false, got 'maybe'",
        "--grove-termination-delay: expected a duration such as 15m or 1h30m, got '15'",
    ] == lines(caught.value, tmp_path)


@pytest.mark.parametrize("text", ["- a\n", "3\n"])
def test_a_settings_file_without_a_mapping_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup, match="settings"):
        settings_of(text, tmp_path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read_settings({}, file=tmp_path / "none", environment={})
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
            {"leader-election-lease-duration": "10.9s", "leader-election-renew-deadline": "10.5s"},
            "leaderElection",
        ),
        ({"namespace-scope-lease-duration": "10s"}, "namespaceScope"),
        ({"namespace-scope-lease-renew-interval": "0"}, "namespaceScope"),
        ({"metrics-bind-address": "8080"}, "metrics.bindAddress"),
        ({"health-probe-bind-address": ":http"}, "health.bindAddress"),
        ({"webhook-bind-address": "9443"}, "webhooks.bindAddress"),
        ({"webhook-certificate-life": "0s"}, "webhooks.certificateLife"),
        ({"webhook-client-name": "kube-apiserver"}, "webhooks.clientCa"),
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
        read_settings(flags, environment={})
    assert [blamed] == [str(error).partition(": ")[0] for error in caught.value.exceptions]


@pytest.mark.parametrize("url", ["http://mx:8001", "model-express:8001", "model-express"])
def test_what_go_parses_as_a_url_is_one(url: str) -> None:
    settings = read_settings({"model-express-url": url}, environment={})
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
    logging = read_settings(flags, environment={}).logging
    assert expected == (logging.level, logging.format)


def test_every_setting_can_be_given_by_flag_and_by_file(tmp_path: Path) -> None:
    for field in fields():
        text = _sample(field)
        *sections, key = field.key.split(".")
        needed = {"webhook-client-ca": "ca.crt"} if key == "clientName" else {}
        by_flag = read_settings({field.flags[0]: text, **needed}, environment={})
        indent = "".join(f"{section}:\n  " for section in sections)
        by_file = settings_of(f"{indent}{key}: {text}\n", tmp_path, needed)
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
