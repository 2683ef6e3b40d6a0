"""Types and reasons of conditions of the older generation, in the spelling that its clients expect."""

from enum import StrEnum
from typing import Final

AVAILABLE: Final = "Available"
NIM_FOUND: Final = "DynamoNimFound"
REQUEST_FOUND: Final = "DynamoNimRequestFound"
NIM_AVAILABLE: Final = "DynamoNimAvailable"
"""Of a DynamoNimRequest: whether its build has written the DynamoNim."""
READY: Final = "Ready"
EXPOSED: Final = "EndpointExposed"
WARNING: Final = "ConfigurationWarning"

MESSAGE_LIMIT: Final = 1024
"""Characters of a message, as for graphs. The API server accepts 32,768."""


class NimReason(StrEnum):
    """Reasons of a DynamoNimDeployment's conditions."""

    READY = "DeploymentReady"
    NOT_READY = "DeploymentNotReady"
    RECONCILING = "Reconciling"


class DeploymentReason(StrEnum):
    """Reasons of a DynamoDeployment's conditions."""

    ALL_READY = "all_deployments_are_ready"
    SOME_NOT_READY = "some_deployments_are_not_ready"
    NO_CONFIG = "failed_to_get_the_DynamoNIMConfig"
    NOT_GENERATED = "failed_to_generate_the_DynamoNimDeployments"
    REQUEST_NOT_SYNCED = "failed_to_sync_the_DynamoNimRequest"
    NOT_SYNCED = "failed_to_sync_the_DynamoNimDeployment"
    EXPOSED = "EndpointExposed"
    NOT_EXPOSED = "EndpointNotExposed"
    UNKNOWN_SERVICES = "unknown_services"
    NO_WARNING = "no_warning"
    UNDEFINED = "undefined"


class State(StrEnum):
    """The state of a DynamoDeployment."""

    FAILED = "failed"
    PENDING = "pending"
    SUCCESSFUL = "successful"
