"""The list of permissions is as narrow as it says, covers what is read, and is what charts have."""

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamo_operator import version
from dynamo_operator.admission.definitions import CONVERTED
from dynamo_operator.graph.render import discovery_objects
from dynamo_operator.process.scope import informers as operator_informers
from dynamo_operator.settings import RenderSettings
from dynamoctl.installation.checks import images
from dynamoctl.installation.permissions import (
    GRANTED,
    PROFILING_NODES,
    RULES,
    Feature,
    Name,
    Rule,
    Where,
    needed,
    policy,
)
from kube_runtime.types.meta import Resource

ROOT = Path(__file__).parents[4]
EVERY_RULE = (*RULES, *PROFILING_NODES, *(rule for granted in GRANTED for rule in granted.rules))
OPTIONAL = (Feature.GROVE, Feature.KAI, Feature.LEADER_WORKER_SET, Feature.ISTIO, Feature.INFERENCE_POOL)


def allowed(rules: Iterable[Rule]) -> set[tuple[str, str, str]]:
    return {
        (rule.group, resource, verb)
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
        if not rule.names
    }


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: f"{rule.group}-{rule.resources[0]}")
def test_no_rule_has_a_wildcard_or_no_reason(rule: Rule) -> None:
    assert not any("*" in part for part in (rule.group, *rule.resources, *rule.verbs))
    assert rule.why.endswith(".")


def test_whoever_may_read_secrets_by_any_name_may_not_write_them() -> None:
    verbs = {verb for group, resource, verb in allowed(RULES) if (group, resource) == ("", "secrets")}
    assert {"list", "watch", "create"} == verbs
    makes = [rule for rule in RULES if rule.resources == ("secrets",) and rule.verbs == ("create",)]
    assert {Where.OWN} == {rule.where for rule in makes}


def test_nobody_may_change_cluster_roles_or_act_as_another() -> None:
    dangerous = {"escalate", "impersonate", "update"}
    held = [rule for rule in RULES if rule.group == "rbac.authorization.k8s.io"]
    assert not any(dangerous & set(rule.verbs) for rule in held)
    binds = [rule for rule in RULES if "bind" in rule.verbs]
    roles = (Name.PLANNER_ROLE, Name.EPP_ROLE, Name.PROFILING_ROLE, Name.PROFILING_NODES)
    assert [roles] == [each.names for each in binds]
    wide = [rule for rule in held if "clusterrolebindings" in rule.resources]
    assert [((Name.PROFILING_NODES,), ("get", "patch"))] == [(r.names, r.verbs) for r in wide]


def test_an_operator_of_one_namespace_writes_nothing_of_the_cluster() -> None:
    others = {Feature.CLUSTER_WIDE, Feature.OWN_BUNDLE, Feature.CONVERSION, Feature.MIGRATION}
    features = set(Feature) - others
    found = [rule for rule in RULES if rule.where is Where.CLUSTER and rule.feature in features]
    asked = {"tokenreviews", "subjectaccessreviews"}
    for rule in found:
        assert set(rule.resources) <= asked or set(rule.verbs) <= {"get", "list", "watch"}, rule
    bundles = [rule for rule in RULES if rule.feature is Feature.OWN_BUNDLE]
    assert [("patch",)] == [rule.verbs for rule in bundles]


def test_of_crds_the_operator_changes_those_that_it_converts() -> None:
    whole, status = ("customresourcedefinitions",), ("customresourcedefinitions/status",)
    definitions = [rule for rule in RULES if rule.resources in (whole, status)]
    changed = [rule for rule in definitions if not set(rule.verbs) <= {"get", "list", "watch"}]
    names = tuple(str(resource.KIND) for resource in CONVERTED)
    assert [
        (whole, Feature.CONVERSION, ("patch",), names),
        (status, Feature.MIGRATION, ("patch",), names),
    ] == [(rule.resources, rule.feature, rule.verbs, rule.names) for rule in changed]


def test_every_kind_that_is_watched_may_be_watched() -> None:
    informers = operator_informers(RenderSettings(mpi_secret_name="k"))
    watched: set[type[Resource]] = {informer.type_ for informer in informers}
    may = {(rule.group, name) for rule in RULES for name in rule.resources if "watch" in rule.verbs}
    assert {(each.KIND.group, each.KIND.plural) for each in watched} <= may


def test_the_operator_holds_all_that_the_discovery_role_grants() -> None:
    [role] = [each for each in discovery_objects("n", "g") if each["kind"] == "Role"]
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted <= allowed(needed(RULES, (), Where.GRAPHS))


@pytest.mark.parametrize("feature", OPTIONAL)
def test_kinds_of_other_projects_are_named_only_with_their_feature(feature: Feature) -> None:
    def groups(features: Iterable[Feature]) -> set[str]:
        chosen = tuple(features)
        return {rule.group for where in Where for rule in needed(RULES, chosen, where)}

    own = {rule.group for rule in RULES if rule.feature is feature}
    assert own
    assert not own & groups(set(Feature) - {feature})
    assert own <= groups({feature})


def test_placeholders_in_resource_names_are_replaced() -> None:
    names = dict.fromkeys(Name, "") | {Name.ELECTION_LEASE: "mine"}
    found = policy(RULES, (), Where.ELECTION, names)
    assert [["mine"]] == [each["resourceNames"] for each in found if "resourceNames" in each]


def test_every_chart_value_has_a_description() -> None:
    made: Any = runpy.run_path(str(ROOT / "tools/chart_values.py"))
    charts = (made["CHART"], *made["PARTS"].values())
    values = [each for chart in charts for each in made["values"](chart)]
    told = [each for each in values if not each.is_group and not each.is_part]
    assert [] == [each.path for each in told if not each.text]


def test_chart_and_package_have_one_version_and_name_every_image() -> None:
    for name in ("dynamo-crds", "dynamo-platform"):
        chart = yaml.safe_load((ROOT / "charts" / name / "Chart.yaml").read_text("utf-8"))
        assert (version(), version()) == (chart["version"], chart["appVersion"])

    listed = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert images(version()) == tuple(each["image"] for each in listed)
