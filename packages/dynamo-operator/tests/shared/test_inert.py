"""Fields without effect: each that is set is reported, and the page lists all of them."""

import re
from pathlib import Path
from typing import Any

import pytest

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.shared.inert import INERT, INERT_COMPONENT, inert_warnings
from kube_runtime.types.meta import from_plain

PAGE = Path(__file__).parents[4] / "docs/compatibility.md"


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"replicas": 2}, []),
        ({"minAvailable": 1}, []),
        ({"failover": {"enabled": True}}, ["spec.failover"]),
        ({"failover": {"enabled": False}, "checkpoint": {"enabled": False}}, []),
    ],
)
def test_a_field_is_reported_where_it_is_set_and_not_switched_off(spec: Any, paths: list[str]) -> None:
    assert paths == [warning.path for warning in inert_warnings(from_plain(spec, ComponentSpec), "spec")]


def test_the_page_lists_exactly_these_fields() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Fields that are stored only")[2]
    rows = re.findall(r"^\| a .*?\| (.*) \|$", section, re.MULTILINE)
    listed = (*INERT.values(), INERT_COMPONENT)
    assert [list(fields) for fields in listed] == [re.findall("`(.*?)`", row) for row in rows]
