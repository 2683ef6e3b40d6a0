"""The PVCs that a graph creates."""

from dynamo_graphs.api.graph import DynamoGraphDeployment, PersistentVolumeClaimSpec
from dynamo_graphs.render.canonical import canonical
from dynamo_graphs.render.metadata import with_graph_metadata
from kube_runtime.kind import Object
from kube_runtime.types.core import PersistentVolumeClaim


def pvc_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """A PVC for each entry with `create: true`, in the user's order.

    They are created once and never changed: what is on a volume is the user's.
    """
    namespace = graph.metadata.namespace
    wanted = (_claim(namespace, each) for each in graph.spec.pvcs if each.create)
    return tuple(canonical(with_graph_metadata(graph, each)) for each in wanted)


def retained_pvcs(graph: DynamoGraphDeployment) -> frozenset[str]:
    """Names of the PVCs that stay when the graph is deleted."""
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
