"""How workers are asked to load and to unload adapters."""

from typing import Annotated, Literal

from dynamo_graphs.settings.declare import Section, Setting
from kube_runtime.errors import ConfigError


class ModelSettings(Section, frozen=True, kw_only=True):
    """Calls to workers."""

    calls: Annotated[
        Literal["auto", "always", "never"],
        Setting(
            "Call workers to load and unload LoRAs. `auto` calls only from a pod of the same "
            "cluster, because elsewhere pod addresses may belong to other machines; `always` "
            "suits an operator outside whose network reaches the pods.",
            ("model-calls",),
        ),
    ] = "auto"
    call_timeout_seconds: Annotated[
        float,
        Setting(
            "Wait this long for a worker to load or unload a LoRA, download included.",
            ("model-call-timeout",),
        ),
    ] = 120.0
    calls_at_once: Annotated[
        int,
        Setting(
            "Limit concurrent worker calls per DynamoModel.",
            ("model-calls-at-once",),
        ),
    ] = 20


def usable(settings: ModelSettings) -> ModelSettings:
    """The same settings.

    Raises:
        ConfigError: with them no worker would ever be asked, or none could answer.
    """
    if settings.call_timeout_seconds <= 0:
        raise ConfigError("models.callTimeout", "must be more than 0")
    if settings.calls_at_once < 1:
        raise ConfigError("models.callsAtOnce", "must be at least 1")
    return settings
