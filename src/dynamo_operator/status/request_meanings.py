"""What each reason of a request's conditions means, and what a user should do about it.

The second half of the table in `status.meanings`. The hard part is that `Succeeded` repeats the reason of the
step that failed: each failure is told where it happens, and `Succeeded` only has rows for what is its own.
"""

from dynamo_operator.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.lifecycle.request import Reason, State, Type
from dynamo_operator.status import shared_texts as texts
from dynamo_operator.status.meanings import Meaning

_REQUEST = DynamoGraphDeploymentRequest.KIND.name
_VALIDATION = (_REQUEST, Type.VALIDATION)
_PROFILING = (_REQUEST, Type.PROFILING)
_GENERATED = (_REQUEST, Type.GENERATED)
_DEPLOYED = (_REQUEST, Type.DEPLOYED)
_SUCCEEDED = (_REQUEST, Type.SUCCEEDED)
_ANEW = "Change the spec, and the request starts anew; or make a new request."
_WAIT = "Nothing. `kubectl get dgdr -w` shows each step."

REQUEST_MEANINGS = (
    Meaning(*_VALIDATION, "True", Reason.ACCEPTED, "The spec has no mistakes.", "Nothing."),
    Meaning(
        *(*_VALIDATION, "False", Reason.VALIDATION_FAILED),
        "The spec has mistakes, is too large, or names a ConfigMap, a key, a claim or a graph that it cannot "
        "have; the message has a line for each. Nothing was made.",
        "Correct the spec, or make what is missing: it is looked at again every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", Reason.WAITING),
        "The Job is not made yet: an earlier one of that name, or pods of it, are still there and could "
        "write over what the next ones find. The message names them.",
        "Nothing, for as long as a pod needs to end. One that stays has a finalizer, or a node that is gone: "
        "`kubectl describe pod NAME`; if its node is gone for good, `kubectl delete pod NAME --force`.",
    ),
    Meaning(
        *(*_PROFILING, "False", Reason.PROFILING_RUNNING),
        "The Job is there. The message says what it waits for, if it waits: a node, an image, a Secret, "
        "a claim.",
        "Nothing, while `status.profilingPhase` moves; measuring takes hours. Else give the pod what the "
        "message names. To cancel, delete the Job.",
    ),
    Meaning(
        *(*_PROFILING, "False", Reason.JOB_CREATION_FAILED),
        "The API server refuses the Job, its account or the account's binding; the message has its words: a "
        "quota, a policy, a ClusterRole that is missing.",
        "Clear the cause away; tried again every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", Reason.NAME_CONFLICT),
        "A Job `profile-NAME` or a ConfigMap `dgdr-output-NAME` belongs to somebody else.",
        "Rename or delete it; looked at again every 2 minutes.",
    ),
    Meaning(
        *(*_PROFILING, "False", Reason.PROFILING_FAILED),
        "The profiler or the copier failed, its pod was taken away too often, or the Job passed its deadline "
        "or was deleted. The message quotes pod, container, exit code and the end of the log.",
        f"Do what the quoted words ask for. {_ANEW}",
    ),
    Meaning(
        *(*_PROFILING, "True", Reason.PROFILING_COMPLETED),
        "The Job has ended well.",
        "Nothing.",
    ),
    Meaning(
        *(*_PROFILING, "Unknown", Reason.STARTED_ANEW),
        "The spec was changed, and what was said of the earlier one counts no more. `SpecGenerated` and "
        "`DeploymentReady` have this reason too.",
        "Nothing.",
    ),
    Meaning(
        *(*_GENERATED, "True", Reason.GENERATED),
        "The graph that profiling found is in `status.generatedDeployment`.",
        "Without `autoApply`: look at it, and apply it. ConfigMaps that could not be made are in "
        "`status.message`.",
    ),
    Meaning(
        *(*_GENERATED, "False", Reason.GENERATION_FAILED),
        "The Job has ended well, and its output is missing, too large, or no graph; the message names the "
        "file and the place.",
        f"See the profiler's log; with `outputPVC` all of its files are kept. {_ANEW}",
    ),
    Meaning(
        *(*_DEPLOYED, "False", Reason.DEPLOYMENT_CREATED),
        "The graph was made and is not ready yet; the message has the graph's own reason if that tells more.",
        "Wait while the model loads; see the graph's `Ready`.",
    ),
    Meaning(*_DEPLOYED, "True", Reason.DEPLOYMENT_READY, "The graph is ready.", "Nothing."),
    Meaning(
        *(*_DEPLOYED, "False", Reason.DEPLOYMENT_CREATION_FAILED),
        "The API server or an admission webhook refuses the graph, or its namespace is not there, or does "
        "not accept graphs from this one; the message has the words.",
        f"Clear the cause away; tried again every 2 minutes. {_ANEW}",
    ),
    Meaning(
        *(*_DEPLOYED, "False", Reason.NAME_CONFLICT),
        "A graph of that name that the request did not make was there when profiling ended.",
        "Delete that graph; looked at again every 2 minutes.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", Reason.DEPLOYMENT_DEGRADED),
        "The graph was ready and is not any more; the message has its reason.",
        "See the graph's `Ready`. The request is ready again when the graph is.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", Reason.DEPLOYMENT_FAILED),
        "The graph says that it has failed, which it leaves only if somebody acts; its reason is repeated.",
        "See the graph's `Ready`, and edit the graph; the request follows it.",
    ),
    Meaning(
        *(*_DEPLOYED, "False", Reason.DEPLOYMENT_DELETED),
        "Somebody deleted the graph. It is not made again.",
        "To have it back, apply `status.generatedDeployment`, or make a new request.",
    ),
    Meaning(*_SUCCEEDED, "Unknown", State.PENDING, "The Job is about to be made.", _WAIT),
    Meaning(*_SUCCEEDED, "Unknown", State.PROFILING, "Profiling is in progress.", _WAIT),
    Meaning(
        *(*_SUCCEEDED, "Unknown", State.DEPLOYING),
        "The graph is being made, or is not ready; see `DeploymentReady`.",
        _WAIT,
    ),
    Meaning(
        *(*_SUCCEEDED, "True", State.READY),
        "There is a graph; with `autoApply` it is ready.",
        "Nothing. Without `autoApply`: apply `status.generatedDeployment`.",
    ),
    Meaning(
        *(*_SUCCEEDED, "False", State.FAILED),
        "The request has failed under an earlier operator, which has left no condition that says why. Every "
        "other failure has the reason of the step that failed.",
        "See the request's events and the Job. Make a new request.",
    ),
    Meaning(
        *(*_SUCCEEDED, "Unknown", Reason.PAUSED),
        "The annotation `nvidia.com/paused` is `true`: nothing is made or read for the request. A Job that "
        "runs goes on.",
        "Take the annotation away, as `dynamoctl rollout resume` does, to go on.",
    ),
    Meaning(
        *(*_SUCCEEDED, "Unknown", Reason.NEW),
        "The request was paused before anything was done, and goes on now.",
        "Nothing.",
    ),
    Meaning(
        *(*_SUCCEEDED, "False", Reason.UNREADABLE),
        "The newest state does not fit the schema that this version of the operator knows; the message says "
        "where. Nothing was changed, and a Job that runs goes on.",
        "Correct the field that the message names, or run the operator that belongs to these CRDs.",
    ),
    Meaning(
        *(*_SUCCEEDED, "False", Reason.TOO_LARGE),
        "The request has more bytes than the operator processes; the message names both numbers. Nothing was "
        "changed, and a Job that runs stays as it is.",
        "Make the request smaller, or have an administrator raise `largestObjectBytes`.",
    ),
    Meaning(*(*_SUCCEEDED, "False", Reason.TOO_EXPENSIVE), texts.TOO_EXPENSIVE, texts.SIMPLIFY),
)
"""In the order of a request's life: each step's condition, then the one that sums them up."""
