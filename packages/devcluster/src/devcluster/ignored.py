"""Which files of a folder a .dockerignore file leaves out: the name that every builder of images reads.

Only as much as ours says: names and `**/name`, and `!` to take something back in. The last line that matches
decides.

Source: the Dockerfile reference, .dockerignore files.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self


@dataclass(frozen=True, slots=True)
class Ignored:
    """The lines of such a file, each with whether it takes something back in."""

    rules: Sequence[tuple[re.Pattern[str], bool]]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The rules of a folder. Without a file, nothing is left out."""
        file = folder / ".dockerignore"
        lines = file.read_text().splitlines() if file.exists() else []
        rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        return cls([(_pattern(rule.removeprefix("!")), rule.startswith("!")) for rule in rules])

    def leaves_out(self, path: PurePosixPath) -> bool:
        """Whether the file with this relative path stays away."""
        out = False
        for pattern, takes_in in self.rules:
            if any(pattern.fullmatch(str(each)) for each in (path, *path.parents)):
                out = not takes_in
        return out


def _pattern(rule: str) -> re.Pattern[str]:
    parts = []
    for part in re.split(r"(\*\*/|\*|\?)", rule.strip("/")):
        special = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        parts.append(special.get(part, re.escape(part)))
    return re.compile("".join(parts))
