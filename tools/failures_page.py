"""The part of docs/failure-modes.md that is written from `advice.toml`: what kubectl shows, what to do."""

import re
from collections.abc import Iterable
from pathlib import Path

from dynamo_graphs.advice import Row, in_general, rows
from tools.markdown import escaped, table

PAGE = Path(__file__).parents[1] / "docs" / "failure-modes.md"
BEGIN = "<!-- Written by `make docs` from packages/dynamo-graphs/src/dynamo_graphs/advice.toml. -->\n"
END = "<!-- End of what `make docs` writes. -->\n"

COMPUTED = re.compile(r"\A(?:TooLarge|NotStarted|NotScheduled|NoNodeSelected): ")
"""Words of messages that no program writes: `why` computes them from pods and nodes."""

SECTIONS = (
    (
        "Pending, FailedScheduling, ProvisioningFailed",
        ("Pending", "Lost", "SchedulingGated", "NotTriggerScaleUp"),
    ),
    (
        "ErrImagePull, ImagePullBackOff, InvalidImageName",
        ("ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "SignatureValidationFailed"),
    ),
    (
        "CreateContainerConfigError, CreateContainerError, RunContainerError",
        ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    ),
    (
        "ContainerCreating, FailedMount, FailedAttachVolume",
        ("ContainerCreating", "FailedMount", "FailedAttachVolume", "UnexpectedAdmissionError"),
    ),
    ("CrashLoopBackOff, Error, OOMKilled, CUDA out of memory, NCCL", ("CrashLoopBackOff",)),
    ("Running, but not READY: Unhealthy", ("Unhealthy",)),
    ("Evicted, NodeNotReady", ("Evicted", "NodeNotReady")),
    (
        "No pods: FailedCreate, denied the request, failed calling webhook",
        ("FailedCreate", "denied the request", "failed calling webhook", "being terminated"),
    ),
    ("Refused to the operator: 403, missing flags", ("cannot create resource", "JobCreationFailed")),
)
"""Titles, and the first words of the rows below them."""


def page() -> str:
    """The page, with its part written anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{_part()}{END}{rest.partition(END)[2]}"


def _part() -> str:
    known = {word for _, words in SECTIONS for word in words}
    missing = {row.shows[0] for row in rows()} - known
    if missing:
        raise ValueError(f"in no section: {', '.join(sorted(missing))}")
    parts = []
    for title, words in SECTIONS:
        lines = table(
            ("kubectl shows", "message", "cause", "what to do"),
            _cells(row for row in rows() if row.shows[0] in words),
        )
        parts += [f"### {title}\n", *lines, ""]
    return "\n".join(parts)


def _cells(shown: Iterable[Row]) -> Iterable[tuple[str, ...]]:
    for row in shown:
        remedies = " ".join(in_general(remedy) for remedy in row.remedies)
        message = COMPUTED.sub("", row.example)
        texts = (", ".join(row.shows), f"`` {message} ``", in_general(row.cause), remedies)
        yield tuple(map(escaped, texts))
