"""One row of the reference page of labels and annotations."""

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """Whether a key is a label or an annotation, and who writes it."""

    LABEL = "label"
    READ = "annotation that we read"
    WRITTEN = "annotation that we write"


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """One key of the reference page."""

    key: str
    use: Use
    on: str
    text: str
