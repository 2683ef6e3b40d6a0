"""scheduling.run.ai/v2: Queue of the KAI scheduler."""

from typing import ClassVar

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class Queue(Resource):
    """A Queue. We only ask whether it is there."""

    KIND = Kind("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False)
    METADATA_ONLY: ClassVar[bool] = True
