"""What the comparison of played cases of the 1.5 line notices, without a control plane."""

import copy

from conformance.newer_play import Seen, fits, status_differences
from conformance.newer_recordings import SOURCES, NewerCase, newer_cases

[CASE] = (case for source in SOURCES for case in newer_cases(source) if case.name == "n-agg-vllm")
GRAPH = "DynamoGraphDeployment"


def as_recorded(case: NewerCase) -> Seen:
    """What an operator would leave that reports the same."""
    recorded = case.after("grove", 0)
    return Seen(
        {
            (body["apiVersion"].rpartition("/")[2], body["kind"], body["metadata"]["name"]): copy.deepcopy(
                body
            )
            for body in (*recorded.objects, *recorded.in_v1alpha1)
            if body["apiVersion"].startswith("nvidia.com/")
        }
    )


def differing(seen: Seen) -> list[str]:
    return [f"{it.object} {it.path}".rstrip() for it in status_differences(CASE, "grove", 0, seen)]


def test_an_equal_status_has_no_difference() -> None:
    assert [] == differing(as_recorded(CASE))


def test_a_difference_in_one_version_is_noticed() -> None:
    for version in ("v1alpha1", "v1beta1"):
        seen = as_recorded(CASE)
        seen.objects[version, GRAPH, "g"]["status"]["state"] = "failed"
        assert [f"{version} {GRAPH}/g status.state"] == differing(seen)


def test_an_object_that_is_missing_in_one_version_is_noticed() -> None:
    seen = as_recorded(CASE)
    del seen.objects["v1alpha1", GRAPH, "g"]
    assert [f"v1alpha1 {GRAPH}/g"] == differing(seen)


def test_nothing_else_is_compared_of_what_one_side_refuses() -> None:
    assert ["Input"] == differing(Seen(refusals=["403: denied"]))


def test_a_pod_fits_a_node_by_labels_alone() -> None:
    labels = {"product": "H200", "zone": "a"}

    def pod(*expressions: dict[str, object], **selector: str) -> dict[str, object]:
        terms = {"nodeSelectorTerms": [{"matchExpressions": [*expressions]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        return {"nodeSelector": selector, "affinity": {"nodeAffinity": required} if expressions else {}}

    assert fits(pod(), labels)
    assert fits(pod(zone="a"), labels)
    assert not fits(pod(zone="b"), labels)
    assert fits(pod({"key": "product", "operator": "In", "values": ["H100", "H200"]}), labels)
    assert not fits(pod({"key": "product", "operator": "In", "values": ["H100"]}), labels)
    assert not fits(pod({"key": "product", "operator": "NotIn", "values": ["H200"]}), labels)
    assert fits(pod({"key": "zone", "operator": "Exists"}), labels)
    assert not fits(pod({"key": "zone", "operator": "DoesNotExist"}), labels)
