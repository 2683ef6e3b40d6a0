"""Every reason that a condition of ours can have, with what it means and what to do.

One table, from which the conditions and the page `docs/conditions.md` come. The hard part is the spelling:
reasons that exist in the Go operator keep theirs, and new ones follow the case of their kind.
"""

from dataclasses import dataclass
from enum import StrEnum


class GraphReason(StrEnum):
    """Reasons of a graph's `Ready` and `Limited`. Source: specification `controllers` 2.9 and `beyond` F1."""

    ALL_READY = "all_resources_are_ready"
    SOME_NOT_READY = "some_resources_are_not_ready"
    VALIDATION_FAILED = "ValidationFailed"
    NAME_CONFLICT = "name_conflict"
    REJECTED = "rejected_by_api_server"
    FAILED = "failed_to_reconcile_the_resources"
    PROVIDER_UNAVAILABLE = "selected_workload_provider_unavailable"
    FIELDS_WITHOUT_EFFECT = "fields_without_effect"
    NO_LIMITS = "all_fields_have_an_effect"
    DECODE_FAILED = "decode_failed"


class ComponentReason(StrEnum):
    """Reasons of a component's conditions. Source: specification `controllers` 3.8."""

    VALID = "ValidationPassed"
    VALIDATION_FAILED = "ValidationFailed"
    DEPLOYMENT_READY = "DeploymentReady"
    DEPLOYMENT_NOT_READY = "DeploymentNotReady"
    GROUPS_READY = "AllLeaderWorkerSetsReady"
    GROUPS_NOT_READY = "SomeLeaderWorkerSetsNotReady"
    NO_ORCHESTRATOR = "MultinodeOrchestratorUnavailable"
    NAME_CONFLICT = "NameConflict"
    REJECTED = "RejectedByApiServer"
    NOT_SERVED = "ApiNotServed"
    DECODE_FAILED = "DecodeFailed"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the page: when a condition has this reason, and what a person should do."""

    kind: str
    condition: str
    status: str
    reason: GraphReason | ComponentReason
    text: str
    advice: str


_GRAPH, _COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
_AVAILABLE = "Available, DynamoComponentReady"
_TAKEN = "An object that should be ours exists and is controlled by another, or by nobody."
_RENAME = (
    "Rename or delete the object that the message names; it is looked at again every 10 seconds."
)
_REFUSED = (
    "The API server or an admission webhook refuses an object: a quota, a policy, an invalid value."
)
_FIX = "Remove the cause that the message gives in the API server's words; tried again every 2 minutes."
_INSTALL = "Install LeaderWorkerSet and Volcano; the work goes on by itself then."
_MISTAKES = (
    "The spec has mistakes; the message lists all of them with their paths. Nothing was changed."
)

_UNREADABLE = (
    "The newest state does not fit the schema that this version of the operator knows; the message says "
    "where. Nothing was changed, and what runs goes on."
)
_REWRITE = (
    "Correct the field that the message names, or run the operator that belongs to these CRDs."
)

MEANINGS = (
    Meaning(
        *(_GRAPH, "Ready", "True", GraphReason.ALL_READY),
        "Every component runs its newest spec, in the wanted number, and nothing older is left.",
        "Nothing.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SOME_NOT_READY),
        "Some components are not ready, or a volume claim that the graph does not make is missing; the "
        "message names each with its cause.",
        "Look at the component (`kubectl describe dcd NAME`), then at its pods.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.VALIDATION_FAILED), _MISTAKES, "Correct the graph."
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.NAME_CONFLICT), _TAKEN, _RENAME),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.REJECTED), _REFUSED, _FIX),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.FAILED),
        "Something is not there that the graph needs and does not make: something that runs pods over "
        "several nodes, the API of InferencePools, a queue of the KAI scheduler; the message names it. "
        "Nothing was changed.",
        "Install or create it; the graph goes on by itself.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.PROVIDER_UNAVAILABLE),
        "The annotation `nvidia.com/workload-provider` names a provider that is not installed. "
        "Nothing was changed, and what runs goes on.",
        "Install it again; the graph goes on by itself. To move the graph, delete and create it.",
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.DECODE_FAILED), _UNREADABLE, _REWRITE),
    Meaning(
        *(_GRAPH, "Limited", "True", GraphReason.FIELDS_WITHOUT_EFFECT),
        "The graph sets fields that this release does nothing about; the message names them. `Ready` speaks "
        "of everything else. A graph without such fields has no such condition.",
        "Take the fields out, or wait for a release that knows them.",
    ),
    Meaning(
        *(_GRAPH, "Limited", "False", GraphReason.NO_LIMITS),
        "Such fields were set, and are gone.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, "Valid", "True", ComponentReason.VALID),
        "The spec has no mistakes.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, "Valid", "False", ComponentReason.VALIDATION_FAILED),
        _MISTAKES,
        "Correct the graph that the component belongs to, or the component itself.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "True", ComponentReason.DEPLOYMENT_READY),
        "The Deployment runs its newest template, in the wanted number, and nothing older is left.",
        "Nothing.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.DEPLOYMENT_NOT_READY),
        "The Deployment is paused, rolls out, or lacks pods; the message says which.",
        "`kubectl describe deployment NAME`, then its pods: image, scheduling, crashes, probes.",
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
        _INSTALL,
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.VALIDATION_FAILED),
        "The spec has mistakes; what runs was left as it is.",
        "See `Valid`.",
    ),
    Meaning(*(_COMPONENT, _AVAILABLE, "False", ComponentReason.NAME_CONFLICT), _TAKEN, _RENAME),
    Meaning(*(_COMPONENT, _AVAILABLE, "False", ComponentReason.REJECTED), _REFUSED, _FIX),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.NOT_SERVED),
        "The component wants an object of a kind that is not installed, such as a VirtualService. "
        "Everything else was made.",
        "Install the API that the message names; the work goes on by itself then.",
    ),
    Meaning(
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.DECODE_FAILED), _UNREADABLE, _REWRITE
    ),
)
