"""What the chart registers is what the operator reviews: names, order and paths of the Go operator."""

import pytest

from dynamo_legacy.admission import LEGACY_RULES
from dynamo_operator.admission.configuration import LEGACY_REVIEWED, REVIEWED, entry_name, path_of
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.models.api import DynamoModel
from kube_runtime.types.meta import Kind
from reviews.registration import rendered

KINDS = tuple(each.KIND for each in REVIEWED)


def test_entries_have_their_names_in_their_order() -> None:
    assert [
        "vdynamocomponentdeployment.kb.io",
        "vdynamographdeployment.kb.io",
        "vdynamomodel.kb.io",
        "vdynamographdeploymentrequest.kb.io",
        "vdynamodeployment.kb.io",
        "vdynamonimdeployment.kb.io",
        "vdynamonimrequest.kb.io",
    ] == [entry_name(each) for each in (*KINDS, *LEGACY_REVIEWED)]


@pytest.mark.parametrize(
    ("case", "kinds"), [("defaults", KINDS), ("legacy-kinds", (*KINDS, *LEGACY_REVIEWED))]
)
def test_each_kind_that_is_reviewed_is_registered(case: str, kinds: tuple[Kind, ...]) -> None:
    found = [
        (each["name"], each["clientConfig"]["service"]["path"], each["rules"])
        for each in rendered(case)["webhooks"]
    ]
    later = {type_.KIND for type_ in CONVERTED}
    rule = {"apiGroups": ["nvidia.com"], "operations": ["CREATE", "UPDATE"]}
    versions = {kind: ["v1alpha1", *(["v1beta1"] if kind in later else [])] for kind in kinds}
    assert [
        (
            entry_name(kind),
            path_of(kind),
            [{**rule, "apiVersions": versions[kind], "resources": [kind.plural]}],
        )
        for kind in kinds
    ] == found
    # A DynamoModel creates no objects.
    policy = rendered(case, "dynamo-platform-dynamo-operator-no-graphs")["spec"]["matchConstraints"]
    plurals = {kind.plural for kind in kinds if kind != DynamoModel.KIND}
    assert plurals == set(policy["resourceRules"][0]["resources"])


def test_kinds_of_the_older_generation_are_those_that_have_rules() -> None:
    assert list(LEGACY_REVIEWED) == [each.type_.KIND for each in LEGACY_RULES]
