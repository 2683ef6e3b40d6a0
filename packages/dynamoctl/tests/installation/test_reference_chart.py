"""Each default, rule and monitor unlike the Go operator's chart has a row in docs/deviations.md."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from dynamo_operator.graph.render import discovery_objects
from dynamoctl.installation.permissions import GRANTED, PROFILING_NODES, RULES, Rule

ROOT = Path(__file__).parents[4]
FACTS = yaml.safe_load((ROOT / "tests/conformance/reference_chart.yaml").read_text("utf-8"))
ROWS = set(
    re.findall(r"^\| ([A-Z]+\d+[a-z]?) \|", (ROOT / "docs/deviations.md").read_text("utf-8"), re.MULTILINE)
)
MONITORED = ROOT / "tests/golden/charts/monitoring/objects.yaml"
TYPE = "nvidia.com/dynamo-component-type"


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from flat(each, f"{path}.{key}" if path else key)
    else:
        yield path, value


def differing_values() -> Iterator[str]:
    """Keys whose default is another one, or that have none. Null and all that is empty count as equal."""
    text = (ROOT / "charts/dynamo-platform/values.yaml").read_text("utf-8")
    ours = dict(flat(yaml.safe_load(text)))
    for key, theirs in FACTS["values"].items():
        mine = ours.get(key)
        if mine != theirs and (mine not in (None, "", [], {}) or theirs not in (None, "", [], {})):
            yield key


Right = tuple[str, str]
"""A verb, and the group and resource that it is for, with "(named)" if that is for single objects."""
NAMED = " (named)"


def rights(rules: Iterable[Rule]) -> set[Right]:
    return {
        (verb, f"{rule.group}/{resource}{NAMED if rule.names else ''}")
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
    }


def discovery_rights() -> set[Right]:
    [role] = [each for each in discovery_objects("n", "g") if each["kind"] == "Role"]
    return {
        (verb, f"{group}/{resource}")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def written(lines: Iterable[str]) -> list[Right]:
    found: list[Right] = []
    for line in lines:
        verbs, _, what = line.partition(" ")
        group, _, resources = what.removesuffix(NAMED).partition("/")
        suffix = NAMED if what.endswith(NAMED) else ""
        for verb in FACTS["verbs"].get(verbs, verbs.split(",")):
            found += [(verb, f"{group}/{each}{suffix}") for each in resources.split(",")]
    return found


def our_rights() -> dict[str, set[Right]]:
    """The permissions of each ServiceAccount of ours. Hooks have none."""
    found = {each.name: rights(each.rules) for each in GRANTED}
    found["dgdr-profiling"] |= rights(PROFILING_NODES)
    hooks = ("ssh-keygen", "webhook-cert-gen", "webhook-ca-inject")
    return {
        **found,
        **{name: set[Right]() for name in hooks},
        "operator": rights(RULES),
        "discovery": discovery_rights(),
    }


def is_held(right: Right, holder: set[Right]) -> bool:
    """Whether the permissions include this one; one for all objects includes named ones."""
    verb, what = right
    return right in holder or (verb, what.removesuffix(NAMED)) in holder


def differing_rights() -> Iterator[tuple[str, str, Right]]:
    """ServiceAccounts with a permission that ours lacks, or that only ours has; the wildcard is one."""
    ours = our_rights()
    assert set(ours) == set(FACTS["rules"])
    for account, lines in FACTS["rules"].items():
        theirs = set(written(lines))
        yield from ((account, "fewer", it) for it in theirs if not is_held(it, ours[account]))
        yield from ((account, "more", it) for it in ours[account] if not is_held(it, theirs))


def monitors() -> dict[str, dict[str, Any]]:
    """The monitors that our chart renders, with the same facts of each."""
    found: dict[str, dict[str, Any]] = {}
    for each in yaml.load_all(MONITORED.read_text("utf-8"), Loader=yaml.CSafeLoader):
        if not each or each["kind"] not in ("ServiceMonitor", "PodMonitor"):
            continue
        spec, is_service = each["spec"], each["kind"] == "ServiceMonitor"
        [endpoint] = spec["endpoints" if is_service else "podMetricsEndpoints"]
        facts = {key: endpoint[key] for key in ("port", "interval", "path")}
        facts["release"] = each["metadata"]["labels"].get("release")
        if is_service:
            facts["scheme"] = endpoint["scheme"]
            facts["verifies"] = not endpoint["tlsConfig"].get("insecureSkipVerify", False)
            facts["honorLabels"] = endpoint["honorLabels"]
        else:
            [types] = [it for it in spec["selector"]["matchExpressions"] if it["key"] == TYPE]
            facts["types"] = types["values"]
        found[f"{each['kind']}/{each['metadata']['name']}"] = facts
    return found


def differing_monitors() -> Iterator[str]:
    ours = monitors()
    assert set(FACTS["monitors"]) == set(ours)
    for name, theirs in FACTS["monitors"].items():
        assert set(theirs) == set(ours[name])
        yield from (f"{name} {key}" for key in theirs if theirs[key] != ours[name][key])


def test_each_difference_of_the_charts_has_a_row_and_no_row_is_left_over() -> None:
    found = {*differing_values(), *differing_monitors()}
    assert set(FACTS["differs"]) == found


def test_each_right_that_differs_is_explained_once_and_no_explanation_is_left_over() -> None:
    explained = [
        (entry["account"], side, right)
        for entry in FACTS["differing_rules"]
        for side in ("fewer", "more")
        for right in written(entry.get(side, ()))
    ]
    assert sorted(differing_rights()) == sorted(explained)
    assert all(entry["why"].endswith(".") for entry in FACTS["differing_rules"])


def test_each_of_these_rows_is_in_the_page() -> None:
    named = {*FACTS["differs"].values(), *(entry["row"] for entry in FACTS["differing_rules"])}
    assert named <= ROWS
