"""No default image of a chart or of the code floats: each has a whole version, or a digest."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dynamo_legacy.settings import LegacySettings
from dynamo_operator.settings import RenderSettings
from dynamoctl.installation.checks import ETCD, NATS, OPERATOR, images

ROOT = Path(__file__).parents[4]
IMAGE = re.compile(
    r"(?:[a-z0-9.-]+(?::\d+)?/)?[a-z0-9][a-z0-9._/-]*:(?!\d+$)\w[\w.-]*(?:@sha256:[0-9a-f]{64})?"
)
NO_IMAGES = re.compile(
    r"(?:system|f):[\w:-]+|dynamo(?:_operator|_legacy|_profiler|ctl)\.[\w.]+:\w+|repository:version|w:gz"
)
"""Groups of Kubernetes, managed fields, entry points of Python, any tag of an older graph, a mode of tar."""
FIXED = re.compile(r":[a-z]?\d+\.\d+\.\d+(?:-[\w.]+)?$|@sha256:[0-9a-f]{64}$")
BUILDERS = {LegacySettings().buildkit_image, LegacySettings().buildkit_rootless_image}
"""Only builds of the older generation run them."""
DEBUGGER = RenderSettings().debugger_image
"""The one that floats; docs/security.md says why."""


def texts(value: Any) -> Iterator[str]:
    """All images in a YAML document, those of a repository and a tag put together."""
    if isinstance(value, dict):
        if "repository" in value and value.get("tag"):
            yield f"{value['repository']}:{value['tag']}"
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str) and "\n" in value:  # the list of images for Artifact Hub
        yield from texts(yaml.safe_load(value))
    elif isinstance(value, str) and IMAGE.fullmatch(value) and not NO_IMAGES.fullmatch(value):
        yield value


def of_charts() -> set[str]:
    return {
        image
        for name in ("values.yaml", "Chart.yaml")
        for path in (ROOT / "charts").rglob(name)
        for image in texts(yaml.safe_load(path.read_text("utf-8")))
    }


def sources() -> Iterator[Path]:
    yield from (ROOT / "packages").glob("*/src/**/*.py")


def of_code() -> set[str]:
    return {
        image
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "\n" not in node.value
        for image in texts(node.value)
        if not image.startswith("localhost/")  # built on the spot, never pulled
    }


def test_each_default_image_is_ours_or_has_a_whole_version() -> None:
    found = of_charts() | of_code() | {*images("0.1.0")}
    assert {DEBUGGER, NATS, ETCD, f"{OPERATOR}:0.1.0", *BUILDERS} == found
    assert {DEBUGGER} == {each for each in found if not FIXED.search(each)}


def test_nothing_is_called_latest() -> None:
    wrong = re.compile(r"[\w/]:latest\b|\btag: *[\"']?latest\b")
    files = [*sources(), *(path for path in (ROOT / "charts").rglob("*") if path.is_file())]
    assert not [str(path) for path in files if wrong.search(path.read_text("utf-8"))]
