"""Settings with which no worker would ever be asked are refused at start."""

import pytest

from dynamo_operator.settings import ModelSettings, usable
from kube_runtime.errors import ConfigError


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
