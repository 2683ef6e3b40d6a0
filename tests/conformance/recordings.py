"""What was recorded: the cases, their steps, and what existed after each of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from conformance.modes import Mode
from kube_runtime.types.meta import Object

_FOLDER = Path(__file__).parent / "cases"
_LEGACY_FOLDER = Path(__file__).parent / "legacy"

_COMPONENTS_ONLY = ("manual-change-reverted", "manual-delete-recreated")
"""Cases whose steps touch a Deployment; they were never played with Grove."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What existed after a stage: objects, the errors of applying, and a set of events."""

    objects: list[Object]
    apply_errors: list[str]
    events: list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """One input, with the steps that follow when things have settled. Stage 0 is the input."""

    name: str

    @property
    def namespace(self) -> str:
        return f"c-{self.name}"

    @property
    def stages(self) -> int:
        return 1 + len([*self._folder.glob("step-*.yaml")])

    def input(self, stage: int) -> list[Object]:
        return documents(self._folder / (f"step-{stage}.yaml" if stage else "input.yaml"))

    @property
    def output(self) -> dict[str, str] | None:
        """The results of profiling in its ConfigMap; None if there are none."""
        path = self._folder / "output.yaml"
        if not path.exists():
            return None
        (data,) = documents(path)
        found: dict[str, str] = data
        return found

    def recorded(self, mode: Mode, stage: int) -> Recorded | None:
        """What the recorded operator made of it. None means: it was not tried in that mode."""
        if mode.name == "grove" and self.name in _COMPONENTS_ONLY:
            return None
        suffix = f"-step-{stage}.yaml" if stage else ".yaml"
        for name in (mode.name, *(("none",) if mode.like_none else ())):
            path = self._folder / (name + suffix)
            if path.exists():
                (body,) = documents(path)
                return Recorded(body["objects"], body["applyErrors"], body["events"])
        return None

    @property
    def _folder(self) -> Path:
        return _FOLDER / self.name


@dataclass(frozen=True, slots=True)
class LegacyCase(Case):
    """An input of the older generation; it was recorded in one mode."""

    @property
    def tag(self) -> str:
        return f"{self.name}:jh2o6dqzpsgfued4"

    @property
    def graph(self) -> str | None:
        """The configuration in the archive of that tag; None if the store has no such archive."""
        path = self._folder / "graph.yaml"
        return path.read_text(encoding="utf-8") if path.exists() else None

    @property
    def image_exists(self) -> bool:
        """Whether the registry has the image of that tag."""
        exists: bool = self._said["imageExists"]
        return exists

    def recorded(self, mode: Mode, stage: int) -> Recorded | None:
        """What the recorded operator made of it. None means: it was not tried in that mode."""
        name = {"plain": "legacy"}.get(self._said["mode"], f"legacy-{self._said['mode']}")
        if name != mode.name or stage:
            return None
        (body,) = documents(self._folder / "expected.yaml")
        return Recorded(body["objects"], body["applyErrors"], body["events"])

    @property
    def _said(self) -> dict[str, Any]:
        (found,) = documents(self._folder / "case.yaml")
        return dict(found)

    @property
    def _folder(self) -> Path:
        return _LEGACY_FOLDER / self.name


def cases(mode: Mode) -> list[Case]:
    """The cases that were recorded in that mode."""
    return [each for each in every_case() if each.recorded(mode, 0)]


def every_case() -> Iterator[Case]:
    return chain(
        (Case(each.name) for each in sorted(_FOLDER.iterdir())),
        (LegacyCase(each.name) for each in sorted(_LEGACY_FOLDER.iterdir())),
    )


@cache
def documents(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each is not None]
