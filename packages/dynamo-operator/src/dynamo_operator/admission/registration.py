"""Which kinds are reviewed, and the names by which a ValidatingWebhookConfiguration refers to them."""

from dynamo_graphs.api.component import GROUP, VERSION, DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource

REVIEWED: tuple[type[Resource], ...] = (
    DynamoComponentDeployment,
    DynamoGraphDeployment,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
"""The kinds with a webhook, in the order of the entries."""

LEGACY_REVIEWED: tuple[Kind, ...] = tuple(
    Kind(GROUP, VERSION, name, f"{name.lower()}s")
    for name in ("DynamoDeployment", "DynamoNimDeployment", "DynamoNimRequest")
)
"""Those of the older generation, whose entries come after them. Their types are not imported here."""


def path_of(kind: Kind) -> str:
    """The URL path of a kind's reviews."""
    group = kind.group.replace(".", "-")
    return f"/validate-{group}-{kind.version}-{kind.name.lower()}"


def entry_name(kind: Kind) -> str:
    """The name of a kind's entry, which refusals show."""
    return f"v{kind.name.lower()}.kb.io"
