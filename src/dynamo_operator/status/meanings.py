"""What each reason of a condition means, and what the person on call should do about it.

The table from which the page `docs/status.md` comes; the part about requests is in
`status.request_meanings`. The hard part is advice that helps at night: where to look first, and whether
anything has to be done at all.
"""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_operator.lifecycle.suspension import SuspensionReason
from dynamo_operator.status import shared_texts as texts
from dynamo_operator.status.model import ModelReason
from dynamo_operator.status.pause import PauseReason
from dynamo_operator.status.reasons import ComponentReason, GraphReason
from dynamo_operator.status.scaling import ScalingReason


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the page: when a condition has this reason, and what a person should do."""

    kind: str
    condition: str
    status: str
    reason: StrEnum
    text: str
    advice: str


_GRAPH, _COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
_ADAPTER = "DynamoGraphDeploymentScalingAdapter"
_MODEL = "DynamoModel"
_AVAILABLE = "Available, DynamoComponentReady"

MEANINGS = (
    Meaning(
        *(_GRAPH, "Ready", "True", GraphReason.ALL_READY),
        "Every component runs its newest spec, in the wanted number, and nothing older is left.",
        "Nothing.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SOME_NOT_READY),
        "Something is not ready, and no pod says why: objects are just being made, Grove has not made any "
        "pods, or a volume claim that the graph does not make is missing. The message names each.",
        "If it stays: look at the events of what the message names (`kubectl describe dcd NAME`), of its "
        "Deployment and of its ReplicaSet. A quota or a webhook that refuses pods is told there.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.INSUFFICIENT_CAPACITY),
        "A pod has found no node for more than 30 seconds. The message has the scheduler's words: how many "
        "nodes lack GPUs or memory, and how many are kept off by taints or selectors.",
        "Add nodes, free GPUs, or ask for less. When there are enough free ones: check `nodeSelector`, "
        "tolerations and the zone of volume claims. An autoscaler of nodes needs minutes.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.IMAGE_PULL_FAILED),
        "The image of a container cannot be pulled; the message has the registry's answer.",
        "Correct the image's name or tag. If access is denied: is there a pull secret for this registry in "
        "the namespace? The kubelet tries again within five minutes.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.CONFIG_ERROR),
        "A container cannot be made, or a pod has a node for more than a minute and its volumes are not "
        "mounted: mostly a Secret, ConfigMap or claim that is missing, or lacks a key.",
        "`kubectl describe pod NAME`: the last events name what is missing. Make it; the pod goes on by "
        "itself.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PODS_CRASHING),
        "A container ends and is started again; the message has its exit code and its last words.",
        "`kubectl logs POD -c CONTAINER --previous`. `OOMKilled`, or code 137: more memory. A failed init "
        "container is told in the same way. If an edit is the cause, take it back.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PODS_NOT_READY),
        "Pods run and are not ready, or have looked for a node for less than 30 seconds; the message names "
        "the container, since when, and which probe does not succeed. A large model takes many minutes to "
        "load while its startup probe fails.",
        "Wait as long as loading takes, and follow `kubectl logs POD -f`. A readiness probe that fails later "
        "means that the process does not answer. `Progressing` says when it has taken too long.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.UPDATING),
        "The newest spec is being rolled out over pods of an older one, or over a graph that was ready; its "
        "pods start, and nothing is wrong with them. Past the deadline of `Progressing` the pods' own reason "
        "is given.",
        "Nothing. Watch `kubectl get dgd -w`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SUSPENDED),
        "The graph is suspended, or about to be; see the condition `Suspended`.",
        "Take the annotation `nvidia.com/suspend` away to go on, as `dynamoctl resume` does.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.MIXED),
        "Several services are not ready, each for another reason; the message has a part for each.",
        "See `status.services`: each has its own `reason` and `blockedPods`. Begin with the one that is "
        "neither `updating` nor `pods_not_ready`.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.VALIDATION_FAILED),
        texts.MISTAKES,
        "Correct the graph.",
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.NAME_CONFLICT), texts.TAKEN, texts.RENAME),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.REJECTED), texts.REFUSED, texts.FIX),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.NOT_ALLOWED), texts.NOT_ALLOWED, texts.ALLOW),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.FAILED),
        "Something is not there that the graph needs and does not make: the API of InferencePools, SSH keys, "
        "a queue of the KAI scheduler; the message names it. Nothing was changed.",
        "Install or create it; the graph goes on by itself.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.NO_ORCHESTRATOR),
        "A service spans several nodes, and nothing that runs such pods is installed. Nothing was changed, "
        "and what runs goes on.",
        "Install LeaderWorkerSet and Volcano, or Grove before the graph is created; it goes on by itself.",
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.API_FORBIDDEN), texts.WITHHELD, texts.GRANT),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PROVIDER_UNAVAILABLE),
        "The provider that runs this graph, usually Grove, is not installed any more, or the operator may "
        "not read it; the message says which. Nothing was changed, and what runs keeps running.",
        "Install it again, or set the chart value that the message names; the graph needs nothing else.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.DECODE_FAILED), texts.UNREADABLE, texts.REWRITE
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.TOO_LARGE), texts.TOO_LARGE, texts.SHRINK),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.TOO_EXPENSIVE), texts.TOO_EXPENSIVE, texts.SIMPLIFY
    ),
    Meaning(
        *(_GRAPH, "Progressing", "True", GraphReason.UPDATING),
        "Replicas are missing: the graph is on its way to its newest spec, or has lost pods that are being "
        "replaced. The message says how many replicas of the newest spec are ready, at best and since when. "
        "A graph that is being suspended has this reason too.",
        "Nothing, as long as the number grows.",
    ),
    Meaning(
        *(_GRAPH, "Progressing", "True", GraphReason.UPDATE_COMPLETE),
        "All services run the newest spec, or the graph is suspended.",
        "Nothing.",
    ),
    Meaning(
        *(_GRAPH, "Progressing", "False", GraphReason.DEADLINE_EXCEEDED),
        "Not one more replica has become ready within `spec.progressDeadlineSeconds` (7800 if it is not "
        "set), after an edit or after pods were lost; or a suspension has not ended within it. A change of "
        "replicas alone gives no new time. Nothing is undone, and work goes on.",
        "See the reason of `Ready`. Take the last edit back, or set a longer time if the model needs it.",
    ),
    Meaning(
        *(_GRAPH, "ConfigurationWarning", "True", GraphReason.INOPERATIVE),
        "Something in the spec is accepted and cannot work as written: a container that ends at once, a port "
        "that is missing, an Ingress without class, a VirtualService without gateway. `Ready` does not "
        "depend on it.",
        "Change the fields that the message names.",
    ),
    Meaning(
        *(_GRAPH, "ConfigurationWarning", "False", GraphReason.NO_WARNING),
        "There was such a warning, and the spec has been corrected. Most graphs never have this condition.",
        "Nothing.",
    ),
    Meaning(
        *(_GRAPH, "Progressing", "Unknown", PauseReason.GRAPH_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: nothing is written for the graph, and the rest of its "
        "status is from before.",
        "Take the annotation away, as `dynamoctl rollout resume` does, to go on.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "Unknown", SuspensionReason.SUSPENDING),
        "The annotation `nvidia.com/suspend` is `true`; replicas are going, workers first.",
        "Nothing. A pod that stays has a long grace period, or a finalizer.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "True", SuspensionReason.SUSPENDED),
        "No service has replicas; the spec keeps its numbers.",
        "Take the annotation `nvidia.com/suspend` away to go on, as `dynamoctl resume` does.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "Unknown", SuspensionReason.RESUMING),
        "The services come back; workers wait for the frontends that the message names.",
        "If it stays: see why those frontends are not ready.",
    ),
    Meaning(
        *(_GRAPH, "Suspended", "False", SuspensionReason.RESUMED),
        "The graph was suspended, and has its replicas back.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, "Paused", "True", PauseReason.COMPONENT_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: nothing is written for the component.",
        "Take the annotation away, as `dynamoctl rollout resume` does, to go on.",
    ),
    Meaning(
        *(_COMPONENT, "Paused", "False", PauseReason.COMPONENT_NOT_PAUSED),
        "The component was paused, and is looked after again.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, "Valid", "True", ComponentReason.VALID),
        "The spec has no mistakes.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, "Valid", "False", ComponentReason.VALIDATION_FAILED),
        texts.MISTAKES,
        "Correct the graph that the component belongs to, or the component itself.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.DEPLOYMENT_READY),
        "The Deployment runs its newest template, in the wanted number, and nothing older is left.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.DEPLOYMENT_NOT_READY),
        "The Deployment is paused, rolls out, or lacks pods; the message says which, and names the pod that "
        "is worst off with its cause.",
        "See `status.service.reason`: the words are those of a graph's `Ready`, with the same advice.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.GROUPS_READY),
        "Every replica's LeaderWorkerSet runs its newest templates on all of its nodes.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.GROUPS_NOT_READY),
        "Some replicas are not complete; the message names each LeaderWorkerSet with its cause.",
        "`kubectl describe leaderworkerset NAME` and `podgroup NAME`, then the pods: place for all "
        "of them at once, image, crashes, probes.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NO_ORCHESTRATOR),
        "The component spans several nodes, and nothing here runs pods over several nodes.",
        texts.INSTALL,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.API_FORBIDDEN),
        texts.WITHHELD,
        texts.GRANT,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.VALIDATION_FAILED),
        "The spec has mistakes; what runs was left as it is.",
        "See `Valid`.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NAME_CONFLICT), texts.TAKEN, texts.RENAME
    ),
    Meaning(*(_COMPONENT, _AVAILABLE, "False", ComponentReason.REJECTED), texts.REFUSED, texts.FIX),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_ALLOWED),
        texts.NOT_ALLOWED,
        texts.ALLOW,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_SERVED),
        "The component wants an object of a kind that is not installed, such as a VirtualService. "
        "Everything else was made.",
        "Install the API that the message names; the work goes on by itself then.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.DECODE_FAILED),
        texts.UNREADABLE,
        texts.REWRITE,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.TOO_LARGE), texts.TOO_LARGE, texts.SHRINK
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.TOO_EXPENSIVE),
        *(texts.TOO_EXPENSIVE, texts.SIMPLIFY),
    ),
    Meaning(
        *(_ADAPTER, "Ready", "True", ScalingReason.SCALED),
        "The service has as many replicas as the adapter says.",
        "Nothing.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SCALING),
        "The service is on its way to that number.",
        "If it stays: see the graph's `Ready`.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.GRAPH_NOT_FOUND),
        "There is no graph of the name in `spec.dgdRef`.",
        "Correct the name, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SERVICE_NOT_FOUND),
        "The graph has no such service; the message lists those that it has.",
        "Correct `spec.dgdRef.serviceName`, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.DISABLED),
        "The service does not want an adapter: `scalingAdapter.enabled` is not true.",
        "Set it, or delete the adapter; until then the graph has its own number.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUPERSEDED),
        "Another adapter, which the operator made, scales the service.",
        "Delete this one.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUSPENDED),
        "The graph is suspended; the number is kept for later.",
        "Resume the graph.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "Unknown", ScalingReason.PAUSED),
        "The adapter or its graph is paused; nothing is written.",
        "Take the annotation `nvidia.com/paused` away, as `dynamoctl rollout resume` does.",
    ),
    Meaning(*(_ADAPTER, "Ready", "False", ScalingReason.REJECTED), texts.REFUSED, texts.FIX),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.DECODE_FAILED), texts.UNREADABLE, texts.REWRITE
    ),
    Meaning(*(_ADAPTER, "Ready", "False", ScalingReason.TOO_LARGE), texts.TOO_LARGE, texts.SHRINK),
    Meaning(
        *(_MODEL, "Paused", "True", PauseReason.COMPONENT_PAUSED),
        "The annotation `nvidia.com/paused` is `true`: no worker is asked, and the status stays as it is. A "
        "model that is deleted is unloaded all the same.",
        "Take the annotation away, as `dynamoctl rollout resume` does, to go on.",
    ),
    Meaning(
        *(_MODEL, "Paused", "False", PauseReason.COMPONENT_NOT_PAUSED),
        "The model was paused, and is looked after again.",
        "Nothing.",
    ),
    Meaning(*(_MODEL, "Valid", "True", ModelReason.VALID), "The spec has no mistakes.", "Nothing."),
    Meaning(
        *(_MODEL, "Valid", "False", ModelReason.INVALID),
        "The spec has mistakes; the message lists all of them. What pods have loaded stays.",
        "Correct the model.",
    ),
    Meaning(
        *(_MODEL, "Valid", "False", ModelReason.DECODE_FAILED), texts.UNREADABLE, texts.REWRITE
    ),
    Meaning(*(_MODEL, "Valid", "False", ModelReason.TOO_LARGE), texts.TOO_LARGE, texts.SHRINK),
    Meaning(
        *(_MODEL, "ServicesFound", "True", ModelReason.SERVICES_FOUND),
        "The pods of the base model were found through that many Services.",
        "Nothing.",
    ),
    Meaning(
        *(_MODEL, "ServicesFound", "False", ModelReason.NO_SERVICES),
        "There are no EndpointSlices of the base model, or they belong to no Service.",
        "See `EndpointsReady`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.ALL_READY),
        "Every pod of the base model has loaded the adapter, but for prefill workers that cannot and whose "
        "graph has it elsewhere.",
        "Nothing.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "True", ModelReason.DISCOVERED),
        "The model is no LoRA, and there are pods that serve the base model; nothing is asked of them.",
        "Nothing.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_READY),
        "Some pods have loaded the adapter, others have not; the message has the most frequent cause, and "
        "`status.endpoints` that of each.",
        "Wait while the number grows. A pod that failed is asked again by itself; if it stays, do what the "
        "cause asks for: see the table in [models.md](models.md#troubleshooting).",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NONE_READY),
        "There are pods, and none of them has loaded the adapter; the message has the most frequent cause.",
        "See the table in [models.md](models.md#troubleshooting). While first loads are under way no cause "
        "is told.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NO_ENDPOINTS),
        "No pods serve the base model in this namespace; the message says what is missing.",
        "Deploy a graph with that `modelRef.name` in this namespace, or make `baseModelName` the same text.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.NOT_CALLED),
        "No worker is called: the operator runs outside the cluster, where the addresses of pods may belong "
        "to other machines, or `--model-calls=never` is set.",
        "Run the operator in the cluster. If its network reaches the pods, set `--model-calls=always`.",
    ),
    Meaning(
        *(_MODEL, "EndpointsReady", "False", ModelReason.CONFLICT),
        "Another model has an adapter of that name on the base model; the message says which.",
        "Choose another `modelName`, or delete or rename the other; this one goes on by itself then.",
    ),
)
