"""The pods and the output of profiling Jobs."""

from kube_runtime.kind import Kind, Object
from kube_runtime.types.batch import Job
from kube_runtime.types.core import Pod, PodStatus
from kube_runtime.types.meta import Resource, Struct


class JobPodStatus(PodStatus):
    """The observed state of a pod of a Job; `reason` is `Evicted`, for example."""

    reason: str = ""
    message: str = ""


class JobPod(Pod):
    """A pod of a profiling Job. Watched by a label that only these have."""

    status: JobPodStatus = JobPodStatus()


class PodTemplate(Struct):
    """The pod template of a Job."""

    spec: Object = {}


class JobSpec(Struct):
    """The part of a Job's spec that its pods have. It is immutable."""

    template: PodTemplate = PodTemplate()


class JobInFull(Resource):
    """A Job with its spec, read once to compare its pods with it."""

    KIND = Job.KIND

    spec: JobSpec = JobSpec()


class JobPodInFull(Resource):
    """A pod with its whole spec, read once to compare it with the template of its Job."""

    KIND = Pod.KIND

    spec: Object = {}
    status: JobPodStatus = JobPodStatus()


class Output(Resource):
    """A ConfigMap with the output of a profiling Job. Watched by a label that only these have."""

    KIND = Kind("", "v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
