"""How workers are asked to load and to unload adapters."""

from typing import Annotated

from dynamo_operator.settings.declare import Section, Setting


class ModelSettings(Section, frozen=True, kw_only=True):
    """Calls to workers."""

    call_timeout_seconds: Annotated[
        float,
        Setting(
            "How long a worker may take to load or unload an adapter, downloads included.",
            ("model-call-timeout",),
        ),
    ] = 120.0
    calls_at_once: Annotated[
        int,
        Setting(
            "How many workers are asked at the same time, for each DynamoModel.",
            ("model-calls-at-once",),
        ),
    ] = 20
