"""The reasons of a DynamoGraphDeploymentRequest's conditions.

`Succeeded` repeats the reason of the step that failed, so it has rows only for reasons of its own.
"""

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.plan.request import RequestConditionType, RequestReason, RequestState
from dynamo_graphs.status.catalog import row as texts
from dynamo_graphs.status.catalog.row import Meaning

_REQUEST = DynamoGraphDeploymentRequest.KIND.name
_VALIDATION = (_REQUEST, RequestConditionType.VALIDATION)
_PROFILING = (_REQUEST, RequestConditionType.PROFILING)
_GENERATED = (_REQUEST, RequestConditionType.GENERATED)
_DEPLOYED = (_REQUEST, RequestConditionType.DEPLOYED)
_SUCCEEDED = (_REQUEST, RequestConditionType.SUCCEEDED)
_ANEW = "Change the spec to restart the request, or create a new request."
_WAIT = "No action needed. `kubectl get dgdr -w` shows each step."

REQUEST_MEANINGS = (
    Meaning(*_VALIDATION, "True", RequestReason.ACCEPTED, "The spec is valid.", texts.NO_ACTION),
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
        texts.NO_ACTION,
    ),
    Meaning(
        *(*_PROFILING, "Unknown", RequestReason.STARTED_ANEW),
        "The spec changed, so earlier results no longer count. `SpecGenerated` and "
        "`DeploymentReady` have this reason too.",
        texts.NO_ACTION,
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
    Meaning(
        *_DEPLOYED, "True", RequestReason.DEPLOYMENT_READY, "The graph is ready.", texts.NO_ACTION
    ),
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
        texts.NO_ACTION,
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
    Meaning(*_SUCCEEDED, "False", RequestReason.TOO_EXPENSIVE, *texts.TOO_EXPENSIVE),
    Meaning(*_SUCCEEDED, "False", RequestReason.REJECTED, *texts.REFUSED),
)
"""In the order of the steps, then `Succeeded`, which sums them up."""
