"""What changes the templates of running pods: the settings that `docs/rollouts.md` lists, and no fact."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynamo_graphs.offline import expanded
from dynamo_operator.settings import RenderSettings
from dynamo_operator.settings import fields as setting_fields
from dynamo_operator.shared.cluster import GROVE, Facts, LiveTemplate, NamespaceDefaults
from dynamo_operator.shared.templates import WORKLOADS, units
from kube_runtime.types.meta import Object

PAGE = (Path(__file__).parents[4] / "docs" / "rollouts.md").read_text("utf-8")
IMAGE = "nvcr.io/dynamo:1.0"


def service(component_type: str, framework: str = "vllm", **fields: Any) -> Object:
    main = {"image": IMAGE, "command": ["python3", "-m", f"dynamo.{framework}"], "args": ["--x"]}
    if component_type != "worker":
        main = {"image": IMAGE}
    return {"componentType": component_type, "extraPodSpec": {"mainContainer": main}, **fields}


GPU: Object = {"resources": {"limits": {"gpu": "1"}}}
DEBUG: Object = {"annotations": {"nvidia.com/enable-debug-mode": "true"}}
GRAPH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "chat", "namespace": "prod"},
    "spec": {
        "services": {
            "Frontend": service("frontend", ingress={"enabled": True, "host": "chat"}),
            "Decode": service("worker", **GPU, **DEBUG),
            "Spread": service("worker", **GPU, multinode={"nodeCount": 2}),
            "Trt": service("worker", "trtllm", **GPU, multinode={"nodeCount": 2}),
            "Planner": service("planner"),
            "Etcd": service("", annotations={"nvidia.com/dynamo-discovery-backend": "etcd"}),
            "Epp": service("epp", eppConfig={"config": {"plugins": [], "schedulingProfiles": []}}),
        }
    },
}
SETTINGS = RenderSettings(
    mpi_secret_name="keys", epp_cluster_role_name="epp", planner_cluster_role_name="planner"
)
FACTS = Facts(lws_served=True, inference_pools_served=True)
OTHER_SETTINGS: dict[str, Any] = {
    "discovery_backend": "etcd",
    "probe_profile": "documented",
    "worker_rollout": "managed",
    "restricted_namespace": "prod",
    "operator_account": ("prod", "operator"),
}
"""Another value of settings for which a generic one would be no value."""
OTHER_FACTS: dict[str, Any] = {
    "pull_secrets": {"nvcr.io": ("ngc",)},
    "component_service_accounts": frozenset(("a",)),
    "running_defaults": {"chat-decode": NamespaceDefaults(("ngc",))},
    "withheld": {GROVE: ()},
    "kai_queues": frozenset(("q",)),
    "claims": frozenset(("c",)),
    "live_templates": {"decode": LiveTemplate(restart="r1")},
}
KEPT = {
    "component_service_account",
    "kai_served",
    "live_templates",
    "pull_secrets",
    "running_defaults",
    "worker_drain_period_seconds",
}
"""Inputs of new pods; running ones do not change for them alone. The last lines of the page's table have the
tests. `live_templates` and `running_defaults` are read back from what runs."""
STOPS = {"lws_served"}
"""Facts without which the operator writes nothing for the graph."""


def templates(settings: RenderSettings, facts: Facts) -> Object:
    """The pod templates of the graph on both providers."""
    found: Object = {}
    for provider, grove in (("component", False), ("grove", True)):
        here = msgspec.structs.replace(facts, grove_served=grove)
        annotations = {"nvidia.com/workload-provider": provider}
        graph = {**GRAPH, "metadata": {**GRAPH["metadata"], "annotations": annotations}}
        made = expanded(graph, here, settings)
        if made.problems:
            return {}
        for body in made.objects:
            if body["kind"] in WORKLOADS:
                found[f"{body['kind']}/{body['metadata']['name']}"] = units(body)
    return found


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"other-{value}"
        case tuple():
            return ("other.example.com",)
    raise TypeError(value)


def in_the_page() -> set[str]:
    """The settings of the page's row, by the flags in it."""
    [row] = [line for line in PAGE.splitlines() if line.startswith("| one of these flags")]
    return set(re.findall(r"`--([\w-]+)`", row))


def test_the_page_lists_the_settings_that_replace_pods() -> None:
    before = templates(SETTINGS, FACTS)
    assert len(before) > 5
    found = set[str]()
    for field in msgspec.structs.fields(RenderSettings):
        value = OTHER_SETTINGS.get(field.name, other(getattr(SETTINGS, field.name)))
        changed = templates(msgspec.structs.replace(SETTINGS, **{field.name: value}), FACTS)
        assert changed
        if changed != before and field.name not in KEPT:
            found.add(flags_of(field)[0])
    assert in_the_page() == found


@pytest.mark.parametrize("field", Facts.__struct_fields__)
def test_a_fact_changes_no_template_or_is_one_that_running_pods_keep(field: str) -> None:
    value = OTHER_FACTS[field] if field in OTHER_FACTS else other(getattr(FACTS, field))
    changed = templates(SETTINGS, msgspec.structs.replace(FACTS, **{field: value}))
    assert (field in STOPS) == (not changed)
    assert field in KEPT | STOPS or changed == templates(SETTINGS, FACTS)


def flags_of(field: msgspec.structs.FieldInfo) -> tuple[str, ...]:
    by_path = {each.path: each.flags for each in setting_fields()}
    return by_path["render", field.name]
