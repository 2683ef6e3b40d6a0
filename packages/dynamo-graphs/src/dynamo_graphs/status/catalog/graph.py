"""The reasons of a DynamoGraphDeployment's conditions."""

from dynamo_graphs.plan.suspension import SuspensionReason
from dynamo_graphs.status.catalog import row as texts
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.reasons import GraphReason, PauseReason

_GRAPH = "DynamoGraphDeployment"
_CAPACITY = (
    "Add nodes, free GPUs, or lower the requests. If enough GPUs are free, check `nodeSelector`, "
    "tolerations and the zone of PVCs. A node autoscaler takes minutes."
)
UNSCHEDULED_ADVICE = f"Wait if a terminating pod is about to free a node. Otherwise: {_CAPACITY}"
"""What to do about a pod that the scheduler has found no node for just now."""
UNSTARTED_ADVICE = (
    "`kubectl describe pod NAME`: its conditions and Events name what it waits for. A container "
    "that has not started has no log."
)
"""What to do about a pod on a node that waits for something else than its containers."""


GRAPH_MEANINGS = (
    Meaning(
        *(_GRAPH, "Ready", "True", GraphReason.ALL_READY),
        "Every component runs its newest spec with the desired number of replicas, and no older "
        "pods remain.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SOME_NOT_READY),
        "Some resources are not ready and no pod reports a cause: they may still be starting, "
        "Grove has not created pods yet, or a PVC that the graph does not create is missing. The "
        "message names each.",
        "If it persists, check the Events of the resources that the message names (`kubectl "
        "describe dcd NAME`), of their Deployment and ReplicaSet. They show a quota or webhook "
        "that refuses pods. If no controller has observed an object of another project, such as a "
        "PodCliqueSet, check that its operator runs: its CRDs alone create no pods.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.INSUFFICIENT_CAPACITY),
        "The scheduler has found no node for a pod for more than 30 seconds. The message quotes "
        "it: how many nodes lack GPUs or memory, and how many are excluded by taints or "
        "selectors.",
        _CAPACITY,
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.IMAGE_PULL_FAILED),
        "The kubelet cannot pull a container's image; the message quotes the registry.",
        "Correct the image's name or tag. If access is denied, add a pull secret for this "
        "registry to the namespace, and restart the graph if some pods of the service serve. The "
        "kubelet retries within five minutes.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.CONFIG_ERROR),
        "The kubelet cannot create a container, or has not mounted the volumes of a pod for more "
        "than a minute after scheduling. Usually a Secret, ConfigMap or PVC is missing or lacks "
        "a key.",
        "`kubectl describe pod NAME`: the last Events name what is missing. Create it; the pod "
        "then starts.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PODS_CRASHING),
        "A container keeps exiting and restarting; the message has its exit code and last log "
        "lines.",
        "`kubectl logs POD -c CONTAINER --previous`. For `OOMKilled` or code 137, raise the "
        "memory limit. Failed init containers are reported the same way. If an edit is the "
        "cause, revert it.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PODS_NOT_READY),
        "Pods run but are not ready, or have been unschedulable for less than 30 seconds; the "
        "message names the container, since when, and the failing probe. A large model takes "
        "many minutes to load, during which its startup probe fails.",
        "If the container runs: wait for the model to load, and follow `kubectl logs POD -f`. A "
        "readiness probe that fails later means that the process does not respond. `Progressing` "
        "reports when it takes too long. If the pod has no node or no running container, it has no "
        "log: `kubectl describe pod POD`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.UPDATING),
        "The newest spec is rolling out over pods of an older one, or over a graph that was "
        "ready; its pods are starting without errors. After the deadline of `Progressing` the "
        "pods' own reason takes its place.",
        "No action needed. Watch `kubectl get dgd -w`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SUSPENDED),
        "The graph is suspended or being suspended; see the condition `Suspended`.",
        "To resume, run `dynamoctl resume NAME` or remove the annotation `nvidia.com/suspend`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.MIXED),
        "Several services are not ready, for different reasons; the message has a part for each.",
        "See `status.services`: each has its own `reason` and `blockedPods`. Start with one that "
        "is neither `updating` nor `pods_not_ready`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.VALIDATION_FAILED),
        texts.MISTAKES,
        "Correct the graph.",
    ),
    Meaning(_GRAPH, "Ready", "False", GraphReason.NAME_CONFLICT, *texts.TAKEN),
    Meaning(_GRAPH, "Ready", "False", GraphReason.REJECTED, *texts.REFUSED),
    Meaning(_GRAPH, "Ready", "False", GraphReason.NOT_ALLOWED, *texts.NOT_ALLOWED),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.FAILED),
        "A prerequisite that the operator does not create is missing: the InferencePool API, SSH "
        "keys, or a queue of the KAI scheduler; the message names it. Nothing was changed.",
        "Install or create it; the operator then continues.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.NO_ORCHESTRATOR),
        "A service spans several nodes, and no orchestrator for multinode pods is installed. "
        "Nothing was changed; running pods keep running.",
        "Install LeaderWorkerSet and Volcano, or Grove before creating the graph; the operator "
        "then continues.",
    ),
    Meaning(_GRAPH, "Ready", "False", GraphReason.API_FORBIDDEN, *texts.WITHHELD),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PROVIDER_UNAVAILABLE),
        "The provider that runs this graph, usually Grove, is no longer installed, or the "
        "operator may not read it; the message says which. Nothing was changed; running pods "
        "keep running.",
        "Reinstall it, or set the chart value that the message names; the operator then continues.",
    ),
    Meaning(_GRAPH, "Ready", "False", GraphReason.DECODE_FAILED, *texts.UNREADABLE),
    Meaning(_GRAPH, "Ready", "False", GraphReason.TOO_LARGE, *texts.TOO_LARGE),
    Meaning(_GRAPH, "Ready", "False", GraphReason.TOO_EXPENSIVE, *texts.TOO_EXPENSIVE),
    Meaning(
        *(_GRAPH, "Progressing", "True", GraphReason.UPDATING),
        "Replicas are missing: the graph is rolling out its newest spec or replacing lost pods. "
        "The message has the highest number of ready replicas of the newest spec so far, and "
        "since when. Also set while a graph is being suspended.",
        "No action needed while the number grows.",
    ),
    Meaning(
        *(_GRAPH, "Progressing", "True", GraphReason.UPDATE_COMPLETE),
        "All services run the newest spec, or the graph is suspended.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_GRAPH, "Progressing", "False", GraphReason.DEADLINE_EXCEEDED),
        "No further replica became ready within `spec.progressDeadlineSeconds` (default 7800) "
        "after an edit or after pods were lost, or a suspension did not finish within it. A "
        "change of replicas alone does not restart the clock. The operator keeps working and "
        "rolls nothing back.",
        "See the reason of `Ready`. Revert the last edit, or set a longer deadline if the model "
        "needs it.",
    ),
    Meaning(
        *(_GRAPH, "ConfigurationWarning", "True", GraphReason.INOPERATIVE),
        "The spec is accepted but cannot work as written: a container that exits at once, a "
        "missing port, an Ingress without a class, a VirtualService without a gateway. It does "
        "not affect `Ready`.",
        "Change the fields that the message names.",
    ),
    Meaning(
        *(_GRAPH, "ConfigurationWarning", "False", GraphReason.NO_WARNING),
        "An earlier warning is fixed. Most graphs never have this condition.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_GRAPH, "Progressing", "Unknown", PauseReason.GRAPH_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: the operator writes nothing for the "
        "graph, and the rest of its status is stale.",
        "To resume, run `dynamoctl rollout resume NAME` or remove the annotation.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "Unknown", SuspensionReason.SUSPENDING),
        "The annotation `nvidia.com/suspend` is `true`; the operator scales to zero, workers "
        "first.",
        "No action needed. A pod that stays has a long grace period or a finalizer.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "True", SuspensionReason.SUSPENDED),
        "All services have zero replicas; the spec keeps its numbers.",
        "To resume, run `dynamoctl resume NAME` or remove the annotation `nvidia.com/suspend`.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "Unknown", SuspensionReason.RESUMING),
        "The operator restores the replicas; workers wait for the frontends that the message "
        "names.",
        "If it persists, check why those frontends are not ready.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "False", SuspensionReason.RESUMED),
        "The graph was suspended and has its replicas back.",
        texts.NO_ACTION,
    ),
)
