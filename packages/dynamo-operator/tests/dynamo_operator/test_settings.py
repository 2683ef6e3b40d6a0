"""Every setting has one text, one key and its own flags."""

from collections import Counter

import pytest

from dynamo_operator.settings import ModelSettings, SettingField, fields, usable
from kube_runtime.errors import ConfigError

FIELDS = {field.key: field for field in fields()}


def test_no_two_settings_share_a_spelling() -> None:
    flags = Counter(name for field in fields() for name in field.setting.flags)
    keys = Counter(field.key for field in fields())
    assert {1} == {*flags.values(), *keys.values()}


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_every_text_is_a_sentence(field: SettingField) -> None:
    assert field.setting.text[0].isupper() or field.setting.text[0] == "`"
    assert field.setting.text.endswith(".")


def test_what_rendering_needs_stands_at_the_top_level() -> None:
    assert "natsAddress" in FIELDS
    assert "groveTerminationDelay" in FIELDS
    assert "leaderElection.leaseDuration" in FIELDS


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        (ModelSettings(calls_at_once=0), "models.callsAtOnce"),
        (ModelSettings(call_timeout_seconds=0.0), "models.callTimeout"),
        (ModelSettings(call_timeout_seconds=-1.0), "models.callTimeout"),
    ],
)
def test_nothing_and_less_is_refused(settings: ModelSettings, source: str) -> None:
    with pytest.raises(ConfigError) as refused:
        usable(settings)
    assert source == refused.value.source


def test_the_least_is_taken() -> None:
    settings = ModelSettings(calls_at_once=1, call_timeout_seconds=0.5)
    assert settings == usable(settings)
