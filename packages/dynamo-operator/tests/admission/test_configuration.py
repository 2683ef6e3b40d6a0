"""The registration object: names, order and paths as installers of the Go operator know them."""

from dataclasses import replace
from typing import Any

from dynamo_legacy.admission import LEGACY_RULES
from dynamo_operator.admission.configuration import LEGACY_REVIEWED
from reviews.registration import Registration, registration

CLUSTER = Registration("dynamo-platform", "dyn")


def entries(wanted: Registration) -> list[Any]:
    found: list[Any] = registration(wanted)["webhooks"]
    return found


def test_entries_have_their_names_in_their_order() -> None:
    assert [
        "vdynamocomponentdeployment.kb.io",
        "vdynamographdeployment.kb.io",
        "vdynamomodel.kb.io",
        "vdynamographdeploymentrequest.kb.io",
    ] == [each["name"] for each in entries(CLUSTER)]


def test_entries_of_the_older_generation_come_last() -> None:
    plain, both = entries(CLUSTER), entries(replace(CLUSTER, legacy_kinds=True))
    assert both[: len(plain)] == plain
    assert [
        ("vdynamodeployment.kb.io", ["dynamodeployments"]),
        ("vdynamonimdeployment.kb.io", ["dynamonimdeployments"]),
        ("vdynamonimrequest.kb.io", ["dynamonimrequests"]),
    ] == [(each["name"], each["rules"][0]["resources"]) for each in both[len(plain) :]]


def test_kinds_of_the_older_generation_are_those_that_have_rules() -> None:
    assert list(LEGACY_REVIEWED) == [each.type_.KIND for each in LEGACY_RULES]
