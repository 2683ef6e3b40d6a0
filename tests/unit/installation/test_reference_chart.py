"""Each default, rule and monitor unlike the Go operator's chart has a row in docs/deviations.md."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from dynamo_operator.installation.granted import GRANTED
from dynamo_operator.installation.permissions import RULES
from dynamo_operator.installation.rule import Rule

ROOT = Path(__file__).parents[3]
FACTS = yaml.safe_load((ROOT / "tests/conformance/reference_chart.yaml").read_text("utf-8"))
ROWS = set(
    re.findall(
        r"^\| ([A-Z]+\d+) \|", (ROOT / "docs/deviations.md").read_text("utf-8"), re.MULTILINE
    )
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


def normal(rules: Iterable[Rule]) -> set[tuple[str, str]]:
    """Each verb with what it is for."""
    return {
        (verb, f"{rule.group}/{resource}")
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
    }


def differing_rules() -> Iterator[str]:
    ours = {each.name: normal(each.rules) for each in GRANTED} | {"manager": normal(RULES)}
    assert set(ours) == set(FACTS["rules"])
    for name, lines in FACTS["rules"].items():
        pairs = [line.split(" ", 1) for line in lines]
        theirs = {(verb, what) for verbs, what in pairs for verb in verbs.split(",")}
        if ours[name] != theirs:
            yield f"rules {name}"


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
    found = {*differing_values(), *differing_rules(), *differing_monitors()}
    assert set(FACTS["differs"]) == found


def test_each_of_these_rows_is_in_the_page() -> None:
    assert set(FACTS["differs"].values()) <= ROWS


def test_our_rules_have_no_wildcard() -> None:
    assert not [pair for pair in normal(RULES) if "*" in pair[0] + pair[1]]
