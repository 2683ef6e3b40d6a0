"""What `dynamoctl render` prints for documents, by its own entry point and from files."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from dynamo_operator.settings import RenderSettings, fields
from dynamoctl.authoring.render import print_objects
from kube_runtime.types.meta import Object


def printed(
    documents: Sequence[Object],
    namespace: str,
    folder: Path,
    *,
    settings: RenderSettings | None,
    facts: Object,
) -> list[Object]:
    """The objects. None as settings means: those of a default installation.

    Raises: ExceptionGroup of ConfigError for what the command refuses.
    """
    options: dict[str, Path | None] = {"settings": None}
    if settings is not None:
        options["settings"] = _file(folder / "settings.json", _settings_file(settings))
    source = _file(folder / "in.json", {"apiVersion": "v1", "kind": "List", "items": documents})
    out = io.StringIO()
    with redirect_stdout(out):
        print_objects(
            [str(source)],
            orchestrator="deployment",
            facts=_file(folder / "facts.json", facts),
            namespace=namespace,
            output="json",
            **options,
        )
    found: list[Object] = json.loads(out.getvalue())["items"]
    return found


def _file(path: Path, body: Any) -> Path:
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def _settings_file(settings: RenderSettings) -> Object:
    """The settings that are not the default, as `--settings` reads them."""
    default = RenderSettings()
    return {
        each.key: _text(each.path[-1], getattr(settings, each.path[-1]))
        for each in fields()
        if each.path[0] == "render" and getattr(settings, each.path[-1]) != getattr(default, each.path[-1])
    }


def _text(name: str, value: Any) -> Any:
    """A value as the file has it: durations have a unit."""
    return f"{value}s" if name.endswith("_seconds") else value
