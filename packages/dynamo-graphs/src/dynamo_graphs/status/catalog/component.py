"""The reasons of a DynamoComponentDeployment's conditions."""

from dynamo_graphs.status.catalog import row as texts
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.reasons import ComponentReason, PauseReason

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
        texts.NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, "Valid", "True", ComponentReason.VALID),
        "The spec is valid.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_COMPONENT, "Valid", "False", ComponentReason.VALIDATION_FAILED),
        texts.MISTAKES,
        "Correct the graph of the component, or the component itself.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.DEPLOYMENT_READY),
        "The Deployment runs its newest template with the desired number of replicas, and no "
        "older pods remain.",
        texts.NO_ACTION,
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
        texts.NO_ACTION,
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
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.API_FORBIDDEN, *texts.WITHHELD),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.VALIDATION_FAILED),
        "The spec is invalid; running pods stay as they are.",
        "See `Valid`.",
    ),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.NAME_CONFLICT, *texts.TAKEN),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.REJECTED, *texts.REFUSED),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_ALLOWED, *texts.NOT_ALLOWED),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_SERVED),
        "The component needs a kind that is not installed, such as VirtualService. The operator "
        "created everything else.",
        "Install the API that the message names; the operator then continues.",
    ),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.DECODE_FAILED, *texts.UNREADABLE),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.TOO_LARGE, *texts.TOO_LARGE),
    Meaning(_COMPONENT, _AVAILABLE, "False", ComponentReason.TOO_EXPENSIVE, *texts.TOO_EXPENSIVE),
)
