"""The schema of a condition, which every kind's status has a list of.

The struct is only read for its schema; conditions are decoded as `kube.types.meta.Condition`. The
lists are plain, not keyed by type, because that is how stored objects were written so far.
"""

from typing import Annotated, Literal

from kube_runtime.crd.declare import Field
from kube_runtime.types.meta import Struct

TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class ConditionSchema(Struct):
    """One statement about an object, and since when it holds."""

    type: Annotated[
        str, Field("What the statement is about.", max_length=316, pattern=TYPE_PATTERN)
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Field("Whether it is so.")]
    reason: Annotated[
        str,
        Field(
            "Why, in one word for programs.", min_length=1, max_length=1024, pattern=REASON_PATTERN
        ),
    ]
    message: Annotated[str, Field("Why, in words for people; may be empty.", max_length=32768)]
    last_transition_time: Annotated[str, Field("When `status` last changed.", format="date-time")]
    observed_generation: Annotated[
        int | None,
        Field("Generation of the spec that the statement is about.", minimum=0, format="int64"),
    ] = None
