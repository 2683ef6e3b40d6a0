"""How many bytes an object of ours may have."""

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.settings import RenderSettings

_PART_OF_A_GRAPH = 8


def most_bytes(type_: type[Resource], settings: RenderSettings) -> int:
    """The limit for objects of that kind; 0 means that there is none.

    A component may have an eighth more: the operator adds labels and owners to what the graph says of it,
    and a graph that is accepted must not lead to a component that is refused.
    """
    most = settings.largest_object_bytes
    return most + most // _PART_OF_A_GRAPH if type_ is DynamoComponentDeployment else most
