"""The volume claims that a graph has made for it."""

from dynamo_operator.api.graph import DynamoGraphDeployment, PersistentVolumeClaimSpec
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.core import PersistentVolumeClaim
from dynamo_operator.render.canonical import canonical
from dynamo_operator.render.metadata import with_graph_metadata


def claim_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """A claim for each entry with `create: true`, in the user's order.

    They are created once and never changed: what is on a volume is the user's.
    """
    namespace = graph.metadata.namespace
    wanted = (_claim(namespace, each) for each in graph.spec.pvcs if each.create)
    return tuple(canonical(with_graph_metadata(graph, each)) for each in wanted)


def retained_claims(graph: DynamoGraphDeployment) -> frozenset[str]:
    """Names of the claims that stay when the graph is deleted."""
    return frozenset(each.name for each in graph.spec.pvcs if each.retain)


def _claim(namespace: str, wanted: PersistentVolumeClaimSpec) -> Object:
    return {
        "apiVersion": PersistentVolumeClaim.KIND.api_version,
        "kind": PersistentVolumeClaim.KIND.name,
        "metadata": {"name": wanted.name, "namespace": namespace},
        "spec": {
            "accessModes": [wanted.volume_access_mode],
            "resources": {"requests": {"storage": wanted.size}},
            "storageClassName": wanted.storage_class,
        },
    }
