"""The fields of a cluster that a check looks at: enough to say what is missing, and no more."""

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource, Struct


class StorageClass(Resource):
    """A StorageClass; whether it is the default one is an annotation."""

    KIND = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)


class NodeStatus(Struct):
    """What a node has for pods."""

    allocatable: dict[str, str] = {}


class Node(Resource):
    """A node; what its GPUs are stands in labels."""

    KIND = Kind("", "v1", "Node", "nodes", namespaced=False)

    status: NodeStatus = NodeStatus()


class PodStatus(Struct):
    """How far a pod is."""

    phase: str = ""


class Pod(Resource):
    """A pod of another project."""

    KIND = Kind("", "v1", "Pod", "pods")

    status: PodStatus = PodStatus()


class AccessReviewStatus(Struct):
    """The answer."""

    allowed: bool = False


class SubjectAccessReview(Resource):
    """Asks whether somebody may do something; created, never stored."""

    KIND = Kind(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        namespaced=False,
    )

    status: AccessReviewStatus = AccessReviewStatus()
