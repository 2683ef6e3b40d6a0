"""Every setting has one text, one key and its own flags."""

from collections import Counter

import pytest

from dynamo_operator.settings import SettingField, fields

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
