"""The kinds of the older generation, from which their CRDs are generated."""

from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim import DynamoNim
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.api.nim_request import DynamoNimRequest
from kube_runtime.types.meta import Resource

RESOURCES: tuple[type[Resource], ...] = (
    DynamoDeployment,
    DynamoNimDeployment,
    DynamoNimRequest,
    DynamoNim,
)
"""Every kind of the older generation."""
