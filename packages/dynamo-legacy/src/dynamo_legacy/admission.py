"""The validation rules of the older generation, for the webhook and for `dynamoctl lint`.

The operator imports this with `--enable-legacy-kinds` only.
"""

import os
from functools import cache
from typing import Any

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.settings import LegacySettings, read_legacy_settings
from dynamo_legacy.validation import (
    deployment_problems,
    deployment_warnings,
    nim_problems,
    nim_warnings,
    request_problems,
)
from dynamo_operator.admission.decide import Rules


@cache
def _settings() -> LegacySettings:
    return read_legacy_settings(os.environ)


LEGACY_RULES: tuple[Rules[Any], ...] = (
    Rules(
        DynamoDeployment,
        problems=lambda deployment, context: deployment_problems(
            deployment, context.settings, _settings(), context.most
        ),
        warnings=lambda deployment, _: deployment_warnings(deployment),
    ),
    Rules(
        DynamoNimDeployment,
        problems=lambda deployment, context: nim_problems(
            deployment, context.settings, _settings(), context.most
        ),
        warnings=lambda deployment, _: nim_warnings(deployment),
    ),
    Rules(
        DynamoNimRequest,
        problems=lambda request, context: request_problems(request, context.settings, context.most),
    ),
)
"""The rules of the older generation."""
