"""The validation rules of the older generation, for the webhook and for `dynamoctl lint`.

The operator imports this with `--enable-legacy-kinds` only.
"""

import os
from functools import cache
from typing import Any

from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.settings import LegacySettings, read_legacy_settings
from dynamo_legacy.validation import (
    deployment_problems,
    deployment_warnings,
    nim_problems,
    nim_warnings,
    request_problems,
)
from dynamo_operator.admission.rules import Rules


@cache
def _settings() -> LegacySettings:
    """The settings of these kinds, which a process that validates large objects reads for itself."""
    return read_legacy_settings(os.environ)


LEGACY_RULES: tuple[Rules[Any], ...] = (
    Rules(
        DynamoDeployment,
        problems=lambda found, at: deployment_problems(found, at.settings, _settings(), at.most),
        changes=lambda _old, _new, _at: (),
        warnings=lambda found, _: deployment_warnings(found),
        change_warnings=lambda _old, _new: (),
    ),
    Rules(
        DynamoNimDeployment,
        problems=lambda found, at: nim_problems(found, at.settings, _settings(), at.most),
        changes=lambda _old, _new, _at: (),
        warnings=lambda found, _: nim_warnings(found),
        change_warnings=lambda _old, _new: (),
    ),
    Rules(
        DynamoNimRequest,
        problems=lambda found, at: request_problems(found, at.most),
        changes=lambda _old, _new, _at: (),
        warnings=lambda _found, _at: (),
        change_warnings=lambda _old, _new: (),
    ),
)
"""The kinds of the older generation that are reviewed."""
