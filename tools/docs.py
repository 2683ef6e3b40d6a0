"""Write every generated page, picture, notebook and chart file: `make docs`. With `--check`, compare them."""

import os
import sys
from pathlib import Path

from tools import (
    admission_page,
    chart_values,
    charts,
    defaults_page,
    failures_page,
    labels_page,
    layers,
    log_page,
    metrics_page,
    notebooks,
    permissions_page,
    profiler_accuracy,
    profiler_page,
    python_page,
    readme_picture,
    recording,
    reference,
    settings_page,
    sizing_page,
    status_page,
    typed_fields,
)

PAGES = (
    admission_page,
    defaults_page,
    failures_page,
    labels_page,
    log_page,
    metrics_page,
    permissions_page,
    profiler_accuracy,
    profiler_page,
    python_page,
    settings_page,
    sizing_page,
    status_page,
)
"""Modules with a path `PAGE` and a function `page` that returns its text."""


def files() -> dict[Path, str]:
    """The text of each generated file."""
    screens = recording.SCREENS.read_text(encoding="utf-8")
    return {
        **{module.PAGE: module.page() for module in PAGES},
        **{reference.FOLDER / name: text for name, text in reference.pages().items()},
        **{notebooks.FOLDER / name: text for name, text in notebooks.notebooks().items()},
        **{charts.CHARTS / path: text for path, text in charts.files().items()},
        **chart_values.files(),
        **typed_fields.files(),
        layers.PICTURE: layers.picture(),
        readme_picture.PICTURE: readme_picture.picture(),
        sizing_page.PICTURE: sizing_page.picture(),
        recording.RECORDING: recording.drawing(screens),
    }


def main() -> None:
    """Write the files, and delete the templates of removed CRDs.

    Raises: SystemExit that names the files that are not up to date, with `--check`.
    """
    texts = files()
    is_check = sys.argv[1:] == ["--check"]
    declared = {
        path: texts[path] for path in typed_fields.files() if texts[path] != path.read_text(encoding="utf-8")
    }
    if declared and not is_check:
        for path, text in declared.items():
            path.write_text(text, encoding="utf-8")
        os.execv(sys.executable, [sys.executable, "-m", "tools.docs"])  # noqa: S606  pages describe these modules
    if is_check:
        old = [
            str(path.relative_to(Path.cwd()))
            for path, text in texts.items()
            if not path.is_file() or path.read_text(encoding="utf-8") != text
        ]
        if old:
            raise SystemExit(f"not up to date, run `make docs`: {' '.join(old)}")
        return
    for template in (charts.CHARTS / "dynamo-crds/templates").glob("*.yaml"):
        if template not in texts:
            template.unlink()
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
