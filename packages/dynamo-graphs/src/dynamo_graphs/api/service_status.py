"""What a service's status says: counts of its replicas, and which pods hold it up."""

from typing import Annotated, Literal

from kube_runtime.crd.declare import Field
from kube_runtime.types.meta import Struct


class BlockedPod(Struct):
    """A pod that is not ready, and why."""

    name: Annotated[str, Field("Name of the pod.")]
    reason: Annotated[
        str, Field("Why it is not ready: a reason of `Ready`, or the kubelet's own word.")
    ]
    container: Annotated[str | None, Field("The container that holds it up, if it is one.")] = None
    message: Annotated[
        str | None, Field("What the scheduler, the kubelet or the container said.")
    ] = None
    since: Annotated[str | None, Field("Since when it is so.", format="date-time")] = None
    restarts: Annotated[
        int | None,
        Field("How often its containers were started again.", minimum=0, format="int32"),
    ] = None


class ServiceReplicaStatus(Struct, omit_defaults=False):
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
        int, Field("Replicas that run the present revision.", minimum=0, format="int32")
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
