"""What each reason of a condition means, and what the engineer on call should do about it.

`make docs` writes docs/status.md from this catalog, and `dynamoctl why` quotes it. Advice names what to check
first, or says that no action is needed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from dynamo_operator.component.api import BlockedPod
from dynamo_operator.component.pods import UNSCHEDULABLE, UNSTARTED
from dynamo_operator.features.suspension import SuspensionReason
from dynamo_operator.models.plan import ModelReason
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.plan import RequestConditionType, RequestReason, RequestState
from dynamo_operator.shared.conditions import (
    ComponentReason,
    GraphReason,
    PauseReason,
    ScalingReason,
)
from kube_runtime.types.meta import Condition


@dataclass(frozen=True, slots=True)
class Meaning:
    """When conditions have a reason, and what to do then. `condition` may be several types, with ", "."""

    kind: str
    condition: str
    status: str
    reason: StrEnum
    text: str
    advice: str


class Remedy(NamedTuple):
    """The text and the advice of rows of several kinds."""

    text: str
    advice: str


NO_ACTION = "No action needed."
TAKEN = Remedy(
    "An object with the name that the operator needs exists, but another owner or none controls it.",
    "Rename or delete the object that the message names; the operator retries every 10 seconds.",
)
REFUSED = Remedy(
    "The API server or an admission webhook refuses an object: a quota, a policy, an invalid value, "
    "a webhook that is down. Objects that wait for it are named after it.",
    "Fix the cause, which the message quotes from the API server; the operator retries every 2 "
    "minutes, and more often if the API server failed.",
)
NOT_ALLOWED = Remedy(
    "The administrator does not allow the gateway, host, ingress class or annotation that the "
    "message names. The operator does not create the Ingress or VirtualService, and leaves an "
    "existing one as it is. Pods are not affected.",
    "Change the field that the message names, or ask the administrator to allow it; "
    "`docs/security.md` lists the settings.",
)
WITHHELD = Remedy(
    "A required optional API is installed, but an administrator has withheld the permission to "
    "read it. The message names the API and the chart value.",
    "Set the chart value that the message names, `dynamo-operator.optionalApis.*`, to true, or "
    "grant the operator's ServiceAccount the rules in [permissions.md](permissions.md). No "
    "restart is needed.",
)
MISTAKES = (
    "The spec is invalid; the message lists all errors with their paths. Nothing was changed."
)
UNREADABLE = Remedy(
    "The object does not match this operator version's schema; the message names the field. "
    "Nothing was changed; running pods keep running.",
    "Correct the field that the message names, or run the operator version that belongs to these "
    "CRDs.",
)
TOO_LARGE = Remedy(
    "The object exceeds the size limit; the message has both numbers. Nothing was changed; "
    "running pods keep running.",
    "Move large values into ConfigMaps or files of the image, or ask an administrator to raise "
    "`largestObjectBytes`.",
)

_MODEL = "DynamoModel"

MODEL_MEANINGS = (
    Meaning(
        *(_MODEL, "Paused", "True", PauseReason.COMPONENT_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: the operator calls no worker and keeps "
        "the status. It still unloads a deleted model.",
        "To resume, run `dynamoctl rollout resume dm/NAME` or remove the annotation.",
    ),
    Meaning(
        *(_MODEL, "Paused", "False", PauseReason.COMPONENT_NOT_PAUSED),
        "The model was paused, and reconciliation has resumed.",
        NO_ACTION,
    ),
    Meaning(*(_MODEL, "Valid", "True", ModelReason.VALID), "The spec is valid.", NO_ACTION),
    Meaning(
        *(_MODEL, "Valid", "False", ModelReason.INVALID),
        "The spec is invalid; the message lists all errors. Pods keep what they have loaded.",
        "Correct the model.",
    ),
    Meaning(_MODEL, "Valid", "False", ModelReason.DECODE_FAILED, *UNREADABLE),
    Meaning(_MODEL, "Valid", "False", ModelReason.TOO_LARGE, *TOO_LARGE),
    Meaning(_MODEL, "Valid", "False", ModelReason.REJECTED, *REFUSED),
    Meaning(
        *(_MODEL, "ServicesFound", "True", ModelReason.SERVICES_FOUND),
        "The operator found the pods of the base model through that many Services.",
        NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "ServicesFound", "False", ModelReason.NO_SERVICES),
        "The base model has no EndpointSlices, or they belong to no Service.",
        "See `EndpointsReady`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.ALL_READY),
        "Every pod of the base model has loaded the LoRA, except prefill workers that cannot and "
        "whose graph has it elsewhere.",
        NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.DISCOVERED),
        "The model is not a LoRA, and pods serve the base model; the operator calls none of them.",
        NO_ACTION,
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_READY),
        "Some pods have loaded the LoRA, others have not; the message has the most frequent "
        "cause, `status.endpoints` the cause of each.",
        "Wait while the number grows. The operator retries failed pods; if one keeps failing, "
        "follow the table in [models.md](models.md#troubleshooting).",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NONE_READY),
        "No pod has loaded the LoRA; the message has the most frequent cause.",
        "See the table in [models.md](models.md#troubleshooting). The cause is empty during "
        "first loads.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NO_ENDPOINTS),
        "No pods serve the base model in this namespace; the message says what is missing.",
        "Deploy a graph with that `modelRef.name` in this namespace, or correct `baseModelName`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_CALLED),
        "The operator calls no worker: it runs outside the cluster, where pod addresses may "
        "belong to other machines, or `--model-calls=never` is set.",
        "Run the operator in the cluster. If its network reaches the pods, set "
        "`--model-calls=always`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.CONFLICT),
        "Another model has a LoRA of that name on the base model; the message says which.",
        "Choose another `modelName`, or delete or rename the other; the operator then continues.",
    ),
)


_COMPONENT = "DynamoComponentDeployment"
_AVAILABLE = "Available, DynamoComponentReady"


COMPONENT_MEANINGS = (
    Meaning(
        *(_COMPONENT, "Paused", "True", PauseReason.COMPONENT_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: the operator writes nothing for the "
        "component.",
        "To resume, run `dynamoctl rollout resume dcd/NAME` or remove the annotation.",
    ),
    Meaning(
        *(_COMPONENT, "Paused", "False", PauseReason.COMPONENT_NOT_PAUSED),
        "The component was paused, and reconciliation has resumed.",
        NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, "Valid", "True", ComponentReason.VALID),
        "The spec is valid.",
        NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, "Valid", "False", ComponentReason.VALIDATION_FAILED),
        MISTAKES,
        "Correct the graph of the component, or the component itself.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.DEPLOYMENT_READY),
        "The Deployment runs its newest template with the desired number of replicas, and no "
        "older pods remain.",
        NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.DEPLOYMENT_NOT_READY),
        "The Deployment is paused, rolling out or missing pods; the message says which, and "
        "names the worst pod with its cause.",
        "See `status.service.reason`; its values and remedies are those of a graph's `Ready`.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.GROUPS_READY),
        "Every replica's LeaderWorkerSet runs its newest templates on all of its nodes.",
        NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.GROUPS_NOT_READY),
        "Some replicas are incomplete; the message names each LeaderWorkerSet with its cause.",
        "`kubectl describe leaderworkerset NAME` and `podgroup NAME`, then the pods: capacity "
        "for all of them at once, image, crashes, probes.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NO_ORCHESTRATOR),
        "The component spans several nodes, and no orchestrator for multinode pods is installed.",
        "Install LeaderWorkerSet and Volcano; the operator then continues.",
    ),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.API_FORBIDDEN, *WITHHELD),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.VALIDATION_FAILED),
        "The spec is invalid; running pods stay as they are.",
        "See `Valid`.",
    ),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.NAME_CONFLICT, *TAKEN),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.REJECTED, *REFUSED),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_ALLOWED, *NOT_ALLOWED),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_SERVED),
        "The component needs a kind that is not installed, such as VirtualService. The operator "
        "created everything else.",
        "Install the API that the message names; the operator then continues.",
    ),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.DECODE_FAILED, *UNREADABLE),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.TOO_LARGE, *TOO_LARGE),
)


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
        NO_ACTION,
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
        MISTAKES,
        "Correct the graph.",
    ),
    Meaning(_GRAPH, "Ready", "False", GraphReason.NAME_CONFLICT, *TAKEN),
    Meaning(_GRAPH, "Ready", "False", GraphReason.REJECTED, *REFUSED),
    Meaning(_GRAPH, "Ready", "False", GraphReason.NOT_ALLOWED, *NOT_ALLOWED),
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
    Meaning(_GRAPH, "Ready", "False", GraphReason.API_FORBIDDEN, *WITHHELD),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PROVIDER_UNAVAILABLE),
        "The provider that runs this graph, usually Grove, is no longer installed, or the "
        "operator may not read it; the message says which. Nothing was changed; running pods "
        "keep running.",
        "Reinstall it, or set the chart value that the message names; the operator then continues.",
    ),
    Meaning(_GRAPH, "Ready", "False", GraphReason.DECODE_FAILED, *UNREADABLE),
    Meaning(_GRAPH, "Ready", "False", GraphReason.TOO_LARGE, *TOO_LARGE),
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
        NO_ACTION,
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
        NO_ACTION,
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
        NO_ACTION,
    ),
)


_REQUEST = DynamoGraphDeploymentRequest.KIND.name
_VALIDATION = (_REQUEST, RequestConditionType.VALIDATION)
_PROFILING = (_REQUEST, RequestConditionType.PROFILING)
_GENERATED = (_REQUEST, RequestConditionType.GENERATED)
_DEPLOYED = (_REQUEST, RequestConditionType.DEPLOYED)
_SUCCEEDED = (_REQUEST, RequestConditionType.SUCCEEDED)
_ANEW = "Change the spec to restart the request, or create a new request."
_WAIT = "No action needed. `kubectl get dgdr -w` shows each step."

REQUEST_MEANINGS = (
    Meaning(*_VALIDATION, "True", RequestReason.ACCEPTED, "The spec is valid.", NO_ACTION),
    Meaning(
        *(*_VALIDATION, "False", RequestReason.VALIDATION_FAILED),
        "The spec is invalid, too large, or references a ConfigMap, key, PVC or graph that is "
        "missing or not allowed; the message has a line for each. Nothing was created.",
        "Correct the spec, or create what is missing; the operator retries every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", RequestReason.WAITING),
        "The operator waits to create the Job: an earlier Job of that name or its pods still "
        "exist and could overwrite new results. The message names them.",
        "No action needed while a pod terminates. A pod that stays has a finalizer or a lost "
        "node: `kubectl describe pod NAME`; if its node is gone for good, `kubectl delete pod "
        "NAME --force`.",
    ),
    Meaning(
        *(*_PROFILING, "False", RequestReason.PROFILING_RUNNING),
        "The Job exists. The message says what it waits for, if anything: a node, an image, a "
        "Secret, a PVC.",
        "No action needed while `status.profilingPhase` advances; measuring takes hours. "
        "Otherwise provide what the message names. To cancel, delete the Job.",
    ),
    Meaning(
        *(*_PROFILING, "False", RequestReason.JOB_CREATION_FAILED),
        "The API server refuses the Job, its ServiceAccount or RoleBinding; the message quotes "
        "it: a quota, a policy, a missing ClusterRole.",
        "Fix the cause; the operator retries every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", RequestReason.NAME_CONFLICT),
        "The Job `profile-NAME` or the ConfigMap `dgdr-output-NAME` exists and has another owner.",
        "Rename or delete it; the operator retries every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", RequestReason.PROFILING_FAILED),
        "The profiler or the copier failed, its pod was evicted too often, or the Job exceeded "
        "its deadline or was deleted. The message has pod, container, exit code and the end of "
        "the log.",
        f"Fix what the log reports. {_ANEW}",
    ),
    Meaning(
        *(*_PROFILING, "True", RequestReason.PROFILING_COMPLETED),
        "The Job succeeded.",
        NO_ACTION,
    ),
    Meaning(
        *(*_PROFILING, "Unknown", RequestReason.STARTED_ANEW),
        "The spec changed, so earlier results no longer count. `SpecGenerated` and "
        "`DeploymentReady` have this reason too.",
        NO_ACTION,
    ),
    Meaning(
        *(*_GENERATED, "True", RequestReason.GENERATED),
        "The generated graph is in `status.generatedDeployment`.",
        "Without `autoApply`, review and apply it. `status.message` lists ConfigMaps that the "
        "operator could not create.",
    ),
    Meaning(
        *(*_GENERATED, "False", RequestReason.GENERATION_FAILED),
        "The Job succeeded, but its output is missing, too large or not a valid graph; the "
        "message names the file and the position.",
        f"See the profiler's log; with `outputPVC` all of its files are kept. {_ANEW}",
    ),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.DEPLOYMENT_CREATED),
        "The graph was created and is not ready yet; the message adds the graph's own reason if "
        "it has one.",
        "Wait while the model loads; see the graph's `Ready`.",
    ),
    Meaning(*_DEPLOYED, "True", RequestReason.DEPLOYMENT_READY, "The graph is ready.", NO_ACTION),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.DEPLOYMENT_CREATION_FAILED),
        "The API server or an admission webhook refuses the graph, or its namespace is missing "
        "or does not accept graphs from this one; the message quotes the refusal.",
        f"Fix the cause; the operator retries every 2 minutes. {_ANEW}",
    ),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.NAME_CONFLICT),
        "A graph of that name existed when profiling completed; the request did not create it.",
        "Delete that graph; the operator retries every 2 minutes.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.DEPLOYMENT_DEGRADED),
        "The graph was ready and no longer is; the message has its reason.",
        "See the graph's `Ready`. The request becomes ready again with the graph.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.DEPLOYMENT_FAILED),
        "The graph has failed and needs a change to recover; the message repeats its reason.",
        "See the graph's `Ready`, and edit the graph; the request follows it.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", RequestReason.DEPLOYMENT_DELETED),
        "The graph was deleted. The operator does not recreate it.",
        "To restore it, apply `status.generatedDeployment`, or create a new request.",
    ),
    Meaning(
        *_SUCCEEDED,
        "Unknown",
        RequestState.PENDING,
        "The operator is about to create the Job.",
        _WAIT,
    ),
    Meaning(*_SUCCEEDED, "Unknown", RequestState.PROFILING, "Profiling is in progress.", _WAIT),
    Meaning(
        *(*_SUCCEEDED, "Unknown", RequestState.DEPLOYING),
        "The operator is creating the graph, or the graph is not ready; see `DeploymentReady`.",
        _WAIT,
    ),
    Meaning(
        *(*_SUCCEEDED, "True", RequestState.READY),
        "The graph exists; with `autoApply` it is ready.",
        "No action needed. Without `autoApply`, apply `status.generatedDeployment`.",
    ),
    Meaning(
        *(*_SUCCEEDED, "False", RequestState.FAILED),
        "The request failed under an earlier operator that left no condition with the cause. "
        "Every other failure has the reason of the failed step.",
        "See the request's Events and the Job. Create a new request.",
    ),
    Meaning(
        *(*_SUCCEEDED, "Unknown", RequestReason.PAUSED),
        "The annotation `nvidia.com/paused` is `true`: the operator creates and reads nothing "
        "for the request. A running Job continues.",
        "To resume, run `dynamoctl rollout resume dgdr/NAME` or remove the annotation.",
    ),
    Meaning(
        *(*_SUCCEEDED, "Unknown", RequestReason.NEW),
        "The request was paused before its first step and now continues.",
        NO_ACTION,
    ),
    Meaning(
        *(*_SUCCEEDED, "False", RequestReason.UNREADABLE),
        "The object does not match this operator version's schema; the message names the field. "
        "Nothing was changed; a running Job continues.",
        "Correct the field that the message names, or run the operator version that belongs to "
        "these CRDs.",
    ),
    Meaning(
        *(*_SUCCEEDED, "False", RequestReason.TOO_LARGE),
        "The request exceeds the size limit; the message has both numbers. Nothing was changed; "
        "a running Job continues.",
        "Make the request smaller, or ask an administrator to raise `largestObjectBytes`.",
    ),
    Meaning(*_SUCCEEDED, "False", RequestReason.REJECTED, *REFUSED),
)
"""In the order of the steps, then `Succeeded`, which sums them up."""


_ADAPTER = "DynamoGraphDeploymentScalingAdapter"


SCALING_MEANINGS = (
    Meaning(
        *(_ADAPTER, "Ready", "True", ScalingReason.SCALED),
        "The service has the adapter's number of replicas.",
        NO_ACTION,
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SCALING),
        "The service is scaling to that number.",
        "If it persists, see the graph's `Ready`.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.GRAPH_NOT_FOUND),
        "The graph in `spec.dgdRef` does not exist.",
        "Correct the name, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SERVICE_NOT_FOUND),
        "The graph has no such service; the message lists its services.",
        "Correct `spec.dgdRef.serviceName`, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.DISABLED),
        "The service has not enabled adapters: `scalingAdapter.enabled` is not true.",
        "Enable it, or delete the adapter; until then the graph's own number applies.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUPERSEDED),
        "Another adapter, created by the operator, scales the service.",
        "Delete this one.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUSPENDED),
        "The graph is suspended; the adapter keeps its number.",
        "Resume the graph.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "Unknown", ScalingReason.PAUSED),
        "The adapter or its graph is paused; the operator writes nothing.",
        "To resume, run `dynamoctl rollout resume` for it or remove the annotation "
        "`nvidia.com/paused`.",
    ),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.REJECTED, *REFUSED),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.DECODE_FAILED, *UNREADABLE),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.TOO_LARGE, *TOO_LARGE),
)


MEANINGS = (*GRAPH_MEANINGS, *COMPONENT_MEANINGS, *SCALING_MEANINGS, *MODEL_MEANINGS)
"""The rows of every kind but requests, in the order of the page."""

_ROWS = {
    (row.kind, type_, row.status, str(row.reason)): row
    for row in (*MEANINGS, *REQUEST_MEANINGS)
    for type_ in row.condition.split(", ")
}


def pod_advice(reason: str, pod: BlockedPod) -> str:
    """What to do about a pod that a service reports with that reason; "" if the advice is the reason's.

    Pods that are not ready yet have nothing in common but that: one loads its model, another has no node.
    """
    if reason != GraphReason.PODS_NOT_READY:
        return ""
    if pod.reason == UNSCHEDULABLE:
        return UNSCHEDULED_ADVICE
    return UNSTARTED_ADVICE if pod.container is None or pod.reason in UNSTARTED else ""


def meaning(kind: str, condition: Condition) -> Meaning | None:
    """The row of a condition of that kind; None if this version does not know its reason.

    `Succeeded` of a request repeats the reason of the step that failed: then the row is that of the step.
    """
    row = _ROWS.get((kind, condition.type, condition.status, condition.reason))
    if row is not None or kind != DynamoGraphDeploymentRequest.KIND.name:
        return row
    same = (kind, condition.status, condition.reason)
    return next(
        (row for row in REQUEST_MEANINGS if same == (row.kind, row.status, row.reason)), None
    )
