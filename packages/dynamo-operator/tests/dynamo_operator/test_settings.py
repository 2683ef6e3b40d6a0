"""Every setting has one key and its own flags."""

from collections import Counter

from dynamo_operator.settings import fields


def test_no_two_settings_share_a_spelling() -> None:
    flags = Counter(name for field in fields() for name in field.flags)
    keys = Counter(field.key for field in fields())
    assert {1} == {*flags.values(), *keys.values()}
