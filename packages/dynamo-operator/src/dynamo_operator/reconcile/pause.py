"""A paused object: its status reports that, and nothing else is done until the annotation is removed."""

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.status.pause import paused_condition
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.controller.controller import Result
from kube_runtime.controller.events import Recorder
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource


async def report_paused(
    found: Resource,
    writer: Writer,
    recorder: Recorder,
) -> Result:
    """Say that the object is paused. Its next change wakes us, the end of the pause too."""
    status: Object = {"conditions": [paused_condition(found)]}
    if isinstance(found, DynamoModel):  # both are required by the schema
        status["readyEndpoints"] = found.status.ready_endpoints or 0
        status["totalEndpoints"] = found.status.total_endpoints or 0
    if isinstance(found, DynamoGraphDeployment):
        status["progress"] = None  # a paused graph has not stalled
    stored = await patch_status(writer, found, status)
    if stored is not found:
        recorder.event(
            found,
            reason="Paused",
            message=(f"{labels.PAUSED} is true: the operator writes nothing"),
        )
    return Result(written=stored)
