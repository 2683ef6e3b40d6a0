"""Every reason that a condition of ours can have, with what it means and what to do.

One table, from which the conditions and the page `docs/conditions.md` come. The hard part is the spelling:
reasons that exist in the Go operator keep theirs, and new ones follow the case of their kind.
"""

from dataclasses import dataclass
from enum import StrEnum


class GraphReason(StrEnum):
    """Reasons of a graph's `Ready`. Source: specification `controllers` 2.9 and `beyond` F1."""

    ALL_READY = "all_resources_are_ready"
    SOME_NOT_READY = "some_resources_are_not_ready"
    VALIDATION_FAILED = "ValidationFailed"
    NAME_CONFLICT = "name_conflict"
    REJECTED = "rejected_by_api_server"


class ComponentReason(StrEnum):
    """Reasons of a component's conditions. Source: specification `controllers` 3.8."""

    VALID = "ValidationPassed"
    VALIDATION_FAILED = "ValidationFailed"
    DEPLOYMENT_READY = "DeploymentReady"
    DEPLOYMENT_NOT_READY = "DeploymentNotReady"
    NAME_CONFLICT = "NameConflict"
    REJECTED = "RejectedByApiServer"


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
_MISTAKES = (
    "The spec has mistakes; the message lists all of them with their paths. Nothing was changed."
)

MEANINGS = (
    Meaning(
        *(_GRAPH, "Ready", "True", GraphReason.ALL_READY),
        "Every component runs its newest spec, in the wanted number, and nothing older is left.",
        "Nothing.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.SOME_NOT_READY),
        "Some components are not ready; the message names each with its cause.",
        "Look at the component (`kubectl describe dcd NAME`), then at its pods.",
    ),
    Meaning(
        *(_GRAPH, "Ready", "False", GraphReason.VALIDATION_FAILED), _MISTAKES, "Correct the graph."
    ),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.NAME_CONFLICT), _TAKEN, _RENAME),
    Meaning(*(_GRAPH, "Ready", "False", GraphReason.REJECTED), _REFUSED, _FIX),
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
        *(_COMPONENT, _AVAILABLE, "False", ComponentReason.VALIDATION_FAILED),
        "The spec has mistakes; what runs was left as it is.",
        "See `Valid`.",
    ),
    Meaning(*(_COMPONENT, _AVAILABLE, "False", ComponentReason.NAME_CONFLICT), _TAKEN, _RENAME),
    Meaning(*(_COMPONENT, _AVAILABLE, "False", ComponentReason.REJECTED), _REFUSED, _FIX),
)
