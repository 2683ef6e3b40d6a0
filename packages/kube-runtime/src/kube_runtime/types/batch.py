"""batch/v1: Job."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Struct


class JobStatus(Struct):
    """The observed state of a Job. It has ended with the condition `Complete` or `Failed`."""

    conditions: tuple[Condition, ...] = ()
    completion_time: str | None = None


class Job(Resource):
    """A Job. It is created once and never changed, so its spec is not decoded."""

    KIND = Kind("batch", "v1", "Job", "jobs")

    status: JobStatus = JobStatus()
