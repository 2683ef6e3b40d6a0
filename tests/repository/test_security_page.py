"""Every statement of the page on security names a test that exists."""

import ast
import importlib
import re
from pathlib import Path

import msgspec
import pytest

from dynamo_legacy.api import RESOURCES as OLDER
from dynamo_operator.crds import RESOURCES, custom_resource_definition, custom_resource_definitions
from dynamoctl.installation.permissions import GRANTED, NVIDIA, PROFILING_NODES, RULES
from kube_runtime.types.meta import Resource
from tools.labels_page import KEYS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
TESTS = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(\w+)`")


TYPES = ("kube_runtime.types.kinds", "dynamo_operator.shared.cluster")
VERBS = ("create", "update", "patch", "delete")
OUTGOING = "## Outgoing connections"
OPENERS = re.compile(
    r"(.*\.)?(ClientSession|urlopen|HTTPS?Connection|create_connection|open_connection|S3Store)"
    r"|(.*\.)?(load_and_set|Popen|execvp|create_subprocess_\w+)|subprocess\.\w+"
)
"""Calls that open a connection or start a program."""
WORTH = "## What a right to write each kind is worth"
READ_BACK = "## What the operator reads back"


def rows(heading: str = "## What is closed") -> list[str]:
    text = PAGE.read_text("utf-8")
    table = text.partition(heading)[2].partition("\n## ")[0]
    kinds = ("| kind ", "| objects ", "| right ", "| a tenant, ", "| ServiceAccount ")
    head = (*kinds, "| program, ")
    lines = (line for line in table.splitlines() if line.startswith("| "))
    return [line for line in lines if not line.startswith(head)]


@pytest.mark.parametrize("row", [*rows(), *rows(OUTGOING), *rows(WORTH), *rows(READ_BACK)])
def test_a_row_names_a_test_that_exists(row: str) -> None:
    found = TESTS.search(row)
    assert found, row
    tree = ast.parse((ROOT / found[1]).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in tree.body if isinstance(node, kinds)}


def test_every_module_that_opens_a_connection_has_a_row() -> None:
    paths = (path for row in rows(OUTGOING) for path in re.findall(r"`(\w+/[\w/]+\.py)`", row))
    opening = {
        str(file.relative_to(source))
        for source in ROOT.glob("packages/*/src")
        for file in source.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and OPENERS.fullmatch(ast.unparse(node.func))
    }
    assert opening - {*paths} == set()


def listed(pattern: str) -> list[tuple[str, str]]:
    """What the first column of a row names, by the pattern, with each verb of the second."""
    return [
        (name, verb)
        for row in rows(WORTH)
        if row.count(" | ") == 4  # the tables of kinds and objects; that of ports has four columns
        for name in re.findall(pattern, row.split("|")[1])
        for verb in re.findall(r"`(\w+)`", row.split("|")[2])
    ]


def test_every_kind_and_verb_has_a_row() -> None:
    wanted: set[tuple[str, str]] = set()
    definitions = (*custom_resource_definitions(), *map(custom_resource_definition, OLDER))
    for each in definitions:
        subresources = each["spec"]["versions"][0].get("subresources", {})
        kind = each["spec"]["names"]["kind"]
        wanted |= {(kind, verb) for verb in (*VERBS, *subresources)}
    assert sorted(wanted) == sorted(listed(r"\b(Dynamo\w+)\b"))


def with_status(base: type[Resource] = Resource) -> set[str]:
    """The plural names of the kinds whose status the operator reads."""
    is_read = base.__module__ in TYPES
    has_status = "status" in base.__struct_fields__ and hasattr(base, "KIND")
    found = {base.KIND.plural} if is_read and has_status else set[str]()
    return found.union(*map(with_status, base.__subclasses__()))


def test_every_object_that_the_operator_reads_and_verb_has_a_row() -> None:
    for module in TYPES:
        importlib.import_module(module)
    read = {
        resource
        for rule in RULES
        for resource in rule.resources
        if rule.group != NVIDIA and "/" not in resource and {"get", "list", "watch"} & {*rule.verbs}
    }
    wanted = {(resource, verb) for resource in read for verb in VERBS}
    wanted |= {(resource, "status") for resource in read & with_status()}
    assert sorted(wanted) == sorted(listed(r"`(\w+)`"))


def test_what_each_service_account_that_runs_images_of_users_may_do_has_a_row() -> None:
    present = {
        (account, resource)
        for row in rows(WORTH)
        for account in row.split("|")[1].strip().split(", ")
        for resource in re.findall(r"`(\w+)`", row.split("|")[2])
    }
    rules = [(granted.account, rule) for granted in GRANTED for rule in granted.rules]
    rules += [("dgdr-profiling-job", rule) for rule in PROFILING_NODES]
    wanted = {
        (account, resource.rpartition("/")[2]) for account, rule in rules for resource in rule.resources
    }
    assert not wanted - present


def status_fields(resource: type[Resource]) -> dict[str, str]:
    """The fields of the status of a kind, by their attribute, with their names on the wire."""
    for field in msgspec.structs.fields(resource):
        if field.name == "status":
            return {each.name: each.encode_name for each in msgspec.structs.fields(field.type)}
    return {}


def read_back() -> dict[str, set[str]]:
    named: dict[str, set[str]] = {}
    for row in rows(READ_BACK):
        _, kind, fields, *_ = row.split("|")
        named.setdefault(kind.strip(), set()).update(re.findall(r"`([^`]+)`", fields))
    return named


SHOWN = frozenset({"gpus", "replicas", "selector", "start_time", "ready"})
"""Fields of our kinds that are shown in metrics only, or that are read of other kinds by the same name."""


REPORTING = frozenset({"status", "observability"})
"""Modules that report only."""


def test_every_status_field_that_decides_something_is_in_the_table() -> None:
    fields = {kind.KIND.name: status_fields(kind) for kind in (*RESOURCES, *OLDER)}
    known = {name: wire for each in fields.values() for name, wire in each.items()}
    wanted: set[str] = set()
    for package in ("dynamo-operator", "dynamo-legacy"):
        for path in (ROOT / "packages" / package / "src").rglob("*.py"):
            if path.stem in REPORTING:
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr in known.keys() - SHOWN:
                    parent = node.value
                    name = getattr(parent, "attr", getattr(parent, "id", ""))
                    wanted |= {f"status.{known[node.attr]}"} if name == "status" else set()
    named = read_back()
    assert sorted(wanted - set().union(*named.values())) == []
    for kind, names in named.items():
        if kind in fields:
            of_status = {name.partition(".")[2] for name in names if name.startswith("status.")}
            assert of_status <= {*fields[kind].values()}, kind


def test_every_annotation_that_the_operator_writes_is_in_the_table() -> None:
    written = {row["key"] for row in KEYS if row["use"] == "written"}
    assert sorted(written - set().union(*read_back().values())) == []
