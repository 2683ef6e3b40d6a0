"""The control group of all containers of one node: how to find what is left of them.

Version 1 has a tree per controller and version 2 has one for all; a group of one name in each is treated
alike. A group can be removed when nothing runs in it and no other is below it.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group by its name, in every hierarchy of this machine."""

    name: str
    root: Path = _ROOT

    def make(self) -> None:
        """Makes it in every hierarchy, unless it is there."""
        is_unified = (self.root / "cgroup.controllers").exists()
        for place in (self.root,) if is_unified else self.root.iterdir():
            if place.is_dir():
                (place / self.name).mkdir(exist_ok=True)

    def processes(self) -> set[int]:
        """The pids of all that runs in it and below."""
        pids: set[int] = set()
        for folder in self._folders():
            with suppress(FileNotFoundError, OSError):
                pids |= {int(line) for line in (folder / "cgroup.procs").read_text().split()}
        return pids - {0}

    def remove(self) -> None:
        """Removes it with all below. What something runs in stays."""
        for folder in sorted(self._folders(), key=lambda folder: len(folder.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()

    def _folders(self) -> Iterator[Path]:
        for place in (self.root / self.name, *self.root.glob(f"*/{self.name}")):
            if place.is_dir():
                yield place
                yield from (folder for folder in place.rglob("*") if folder.is_dir())
