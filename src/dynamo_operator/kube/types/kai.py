"""scheduling.run.ai/v2: Queue of the KAI scheduler."""

from typing import ClassVar

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource


class Queue(Resource):
    """A Queue. We only ask whether it is there."""

    KIND = Kind("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False)
    METADATA_ONLY: ClassVar[bool] = True
