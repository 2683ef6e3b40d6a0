"""Status of a service: replica counts, and the pods that are not ready with their causes."""

from typing import Annotated, Literal

from kube_runtime.crd.declare import Field
from kube_runtime.types.meta import Struct


class BlockedPod(Struct):
    """A pod that is not ready, and why."""

    name: Annotated[str, Field("Name of the pod.")]
    reason: Annotated[
        str, Field("Why it is not ready: a reason of `Ready`, or the kubelet's reason.")
    ]
    container: Annotated[str | None, Field("The container that is the cause, if there is one.")] = (
        None
    )
    message: Annotated[
        str | None, Field("Message of the scheduler, the kubelet or the container.")
    ] = None
    since: Annotated[str | None, Field("When this began.", format="date-time")] = None
    restarts: Annotated[
        int | None,
        Field("Number of restarts of its containers.", minimum=0, format="int32"),
    ] = None


class ServiceReplicaStatus(Struct):
    """Replica counts of one component's workload, as observed."""

    component_kind: Annotated[
        Literal["PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"],
        Field("Kind of the workload."),
    ]
    component_name: Annotated[str, Field("Name of the workload.")]
    replicas: Annotated[
        int, Field("Replicas that exist and are not being deleted.", minimum=0, format="int32")
    ]
    updated_replicas: Annotated[
        int, Field("Replicas of the current revision.", minimum=0, format="int32")
    ]
    ready_replicas: Annotated[
        int | None,
        Field(
            "Replicas that are ready. A PodCliqueScalingGroup has no such count.",
            minimum=0,
            format="int32",
        ),
    ] = None
    available_replicas: Annotated[
        int | None,
        Field(
            "Replicas that are available: for a Deployment, ready for long enough; for a "
            "PodCliqueScalingGroup, with enough ready pods in every clique. The other kinds have "
            "no such count.",
            minimum=0,
            format="int32",
        ),
    ] = None
    scheduled_replicas: Annotated[
        int | None,
        Field("Replicas all of whose pods have a node.", minimum=0, format="int32"),
    ] = None
    reason: Annotated[
        str | None,
        Field("Why the service is not ready, in one word; one of the reasons of `Ready`."),
    ] = None
    message: Annotated[str | None, Field("The same in a sentence.")] = None
    component_names: Annotated[
        tuple[str, ...],
        Field("Names of all its workloads; several while workers are rolled out."),
    ] = ()
    runtime_namespace: Annotated[
        str | None, Field("Dynamo namespace in which the service's processes are found.")
    ] = None
    blocked_pods: Annotated[
        tuple[BlockedPod, ...],
        Field("Pods that are not ready and why, at most five.", max_items=5),
    ] = ()
