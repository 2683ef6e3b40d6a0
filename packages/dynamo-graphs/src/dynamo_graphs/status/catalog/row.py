"""A row of the catalog, and the texts that rows of several kinds share."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


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
TOO_EXPENSIVE = Remedy(
    "Validating or rendering the object exceeded the limit of CPU time or memory per "
    "object. Nothing was changed; running pods keep running.",
    "Make the object smaller. The operator retries when it changes, and every 30 minutes.",
)
