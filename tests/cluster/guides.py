"""The manifests and commands of a page, in the order in which users read them."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from dynamo_graphs.versions import has_versions, in_version, with_target
from kube_runtime.types.meta import Object

_BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block of a page below `docs`."""
    file = Path(__file__).parents[2] / "docs" / page
    return _BLOCK.findall(file.read_text(encoding="utf-8"))


def manifests(page: str) -> list[Any]:
    """In v1alpha1, which every API server of a test serves."""
    return [in_v1alpha1(document) for document in written(page)]


def written(page: str) -> list[Any]:
    """The manifests as the page has them."""
    texts = (text for language, text in blocks(page) if language == "yaml")
    return [document for text in texts for document in yaml.safe_load_all(text)]


def in_v1alpha1(document: Object) -> Object:
    """What `dynamoctl convert --to v1alpha1` makes of a document."""
    if has_versions(document):
        return in_version(document, "v1alpha1")
    return with_target(document, "v1alpha1")


def command(line: str) -> list[str]:
    """The words of a line of a console, without `kubectl`."""
    return shlex.split(line.removeprefix("$ kubectl "))


def commands(page: str) -> list[list[str]]:
    texts = (text for language, text in blocks(page) if language == "console")
    return [command(line) for text in texts for line in text.splitlines()]
