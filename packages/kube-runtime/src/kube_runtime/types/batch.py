"""batch/v1: Job, and what its pods and their output say, as far as profiling reads them."""

from kube_runtime.kind import Kind, Object
from kube_runtime.types.core import Pod, PodStatus
from kube_runtime.types.meta import Condition, Resource, Struct


class JobStatus(Struct):
    """What the Job controller observed. Conditions `Complete` and `Failed` are its ends."""

    conditions: tuple[Condition, ...] = ()
    completion_time: str | None = None


class Job(Resource):
    """A Job that profiles. It is made once and never changed, so its spec is not read."""

    KIND = Kind("batch", "v1", "Job", "jobs")

    status: JobStatus = JobStatus()


class JobPodStatus(PodStatus):
    """What the scheduler and the kubelet say of a Job's pod; `reason` is `Evicted`, for one."""

    reason: str = ""
    message: str = ""


class JobPod(Pod):
    """A pod of a Job that profiles. Watched by a label that only these have."""

    status: JobPodStatus = JobPodStatus()


class PodTemplate(Struct):
    """What a Job's pods are created from."""

    spec: Object = {}


class JobSpec(Struct):
    """The part of a Job's spec that its pods have. The API server lets nothing change it."""

    template: PodTemplate = PodTemplate()


class JobInFull(Resource):
    """A Job with its spec; fetched once, to compare pods with it."""

    KIND = Job.KIND

    spec: JobSpec = JobSpec()


class JobPodInFull(Resource):
    """A pod with its whole spec; fetched once, to compare it with its Job's template."""

    KIND = Pod.KIND

    spec: Object = {}
    status: JobPodStatus = JobPodStatus()


class Output(Resource):
    """A ConfigMap that profiling has written. Watched by a label that only these have."""

    KIND = Kind("", "v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
