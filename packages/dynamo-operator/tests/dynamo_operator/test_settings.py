"""Every setting has one key and its own flags; listen addresses are read as Go reads them."""

from collections import Counter

import pytest

from dynamo_operator.settings import Address, fields, listen_address
from kube_runtime.errors import ConfigError


def test_no_two_settings_share_a_spelling() -> None:
    flags = Counter(name for field in fields() for name in field.flags)
    keys = Counter(field.key for field in fields())
    assert {1} == {*flags.values(), *keys.values()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", Address(None, 8080)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),  # noqa: S104  not listened on
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_written_as_in_go(text: str, expected: Address | None) -> None:
    assert expected == listen_address("--metrics-bind-address", text)


@pytest.mark.parametrize("text", ["8080", "localhost", ":http", ":99999", "a:-1"])
def test_a_wrong_address_blames_its_setting(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics-bind-address: expected HOST:PORT"):
        listen_address("--metrics-bind-address", text)
