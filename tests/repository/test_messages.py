"""Files, pages, commands, reasons and metrics that messages and pages name exist."""

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

from dynamo_graphs.catalog import MEANINGS
from dynamo_operator import labels
from dynamoctl.main import app
from former_fields import former_fields_in
from kube_runtime.apply.result import Obstacle
from tools import failures_page

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"(?<![\w/.<-])((?:[\w.-]+/)*[\w-]+\.(?:md|yaml|toml|ipynb))(?![\w/])")
COMMAND = re.compile(r"`dynamoctl ([a-z][a-z-]+)")
REQUIREMENT = r"""'[^'\s]+'|"[^"\s]+"|\./[^\s`'"]+"""
INSTALLED = re.compile(rf"\bpip install ((?:{REQUIREMENT}|[\w.-][^\s`'\"]*)(?: (?:{REQUIREMENT}))*)")
URL = re.compile(r"https?://\S+")


def texts() -> Iterator[tuple[str, str]]:
    """The texts of all modules and chart templates, with the file that has them."""
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield place, URL.sub("", node.value)
    for path in sorted(ROOT.glob("charts/**/templates/*")):
        if path.suffix in (".tpl", ".txt", ".yaml"):
            yield str(path.relative_to(ROOT)), URL.sub("", path.read_text(encoding="utf-8"))


OF_V1ALPHA1 = {
    "dynamo_operator/requests/read.py",  # the namespace of a graph, and the discovery of GPUs by a profiler
    "dynamo_operator/requests/results.py",  # a generated graph in v1alpha1
    "dynamo_operator/shared/written.py",  # the words of both versions
    "dynamo_profiler/shape.py",  # of a configuration: `spelling.py` translates it
    "dynamo_profiler/workers.py",  # both versions of a graph
    "dynamoctl/dev/playground.py",  # expressions of the API server
}
"""Modules some of whose sentences are about objects in v1alpha1 alone."""


def sentences(tree: ast.AST) -> Iterator[str]:
    """The texts of a module that are no documentation, with `X` for what is filled in."""
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    filled = [node.values for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {part for values in filled for part in values}
    for values in filled:
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in strings | parts:
            yield node.value


def test_no_sentence_names_a_field_that_v1beta1_does_not_have() -> None:
    """But the rules of v1alpha1, whose messages are translated, its schemas, and the older generation."""
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        place = path.relative_to(ROOT).as_posix().partition("/src/")[2]
        is_rule = path.stem.startswith(("validate", "warnings"))
        if is_rule or path.stem == "api" or place.startswith("dynamo_legacy/"):
            continue
        texts = (text for text in sentences(ast.parse(path.read_text("utf-8"))) if " " in text)
        if named := [text for text in texts if former_fields_in(text)]:
            found[place] = named
    assert OF_V1ALPHA1 == found.keys(), found


def test_every_page_that_is_named_exists() -> None:
    missing = {
        (place, name)
        for place, text in texts()
        for name in FILE.findall(text)
        if name.endswith(".md") or name.startswith(("docs/", "charts/"))
        if not (ROOT / name).exists() and not any(ROOT.glob(f"docs/**/{name}"))
    }
    assert set() == missing


def test_every_command_that_is_named_exists() -> None:
    known = set(app())
    named = {(place, name) for place, text in texts() for name in COMMAND.findall(text)}
    assert named
    assert set() == {(place, name) for place, name in named if name not in known}


EVENTS = ROOT / "packages/kube-runtime/src/kube_runtime/controller/events.py"


def test_what_the_page_names_is_in_the_code() -> None:
    page = (ROOT / "docs/failure-modes.md").read_text(encoding="utf-8")
    head, _, rest = page.partition(failures_page.BEGIN)
    page = head + rest.partition(failures_page.END)[2]  # what is between them is written from the code
    metrics = str(runpy.run_path(str(ROOT / "tools/metrics_page.py"))["page"]())
    dropped = re.findall(r'event_dropped\("(\w+)"\)', EVENTS.read_text(encoding="utf-8"))
    known = {str(each.reason) for each in MEANINGS} | set(Obstacle) | set(dropped)
    known |= set(re.findall(r"`(dynamo_operator_\w+)`", metrics))
    named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", page))
    assert len(named) > 30
    assert set() == named - known
    keys = set(re.findall(r"`(nvidia\.com/[\w-]+)", page))
    assert set() == keys - labels.LABELS - labels.ANNOTATIONS


def test_words_that_kubectl_shows_lead_to_the_page_of_failures() -> None:
    page = (ROOT / "docs/failure-modes.md").read_text(encoding="utf-8")
    words = (
        *("CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError", "OOMKilled"),
        *("ContainerCreating", "FailedScheduling", "FailedMount", "Evicted", "x509", "CUDA out of memory"),
        *("NCCL", "403", "401", "429", "unrecognized arguments", "No space left on device", "NATS", "etcd"),
    )
    assert [] == [word for word in words if word not in page]


MODULE = ROOT / "packages/kube-runtime/src/kube_runtime/wire.py"


def test_only_one_module_makes_paths() -> None:
    # The type checkers refuse any other text where a `UrlPath` is expected.
    makers = {
        path
        for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "UrlPath"
    }
    assert {MODULE} == makers


def test_what_is_to_be_installed_is_a_folder_of_the_clone_or_in_the_lock() -> None:
    """A package of this repository is not in an index, where its name is free for other projects."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    ours = {path.name for path in ROOT.glob("packages/*")}
    locked = {package["name"] for package in packages} - ours
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")]
    pages += [*ROOT.glob("packages/*/README.md"), *ROOT.glob("tools/*.py")]
    named = [*texts(), *((str(page), page.read_text(encoding="utf-8")) for page in pages)]
    hints = [(place, hint) for place, text in named for hint in INSTALLED.findall(text)]
    assert len(hints) > 5
    for place, hint in hints:
        for word in hint.replace("'", "").replace('"', "").split():
            if word.startswith("-"):
                continue
            name = word.partition("[")[0]
            is_folder = name.startswith("./packages/") and any(ROOT.glob(name))
            assert is_folder or name in locked, f"{place}: pip install {hint}"
    extra = re.compile(rf"(?<![\w./-])(?:{'|'.join(ours)})\[[a-z,]+\]")
    assert [] == [(place, name) for place, text in named for name in extra.findall(text)]
