"""What must hold for the objects of any graph: names and labels fit, selectors find their own pods, and the
pods of a group know their place."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dynamo_operator import labels
from kube_runtime.types.meta import Object, key_of
from kubelet import command_line

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NAMES_OF_63 = frozenset(
    ("Service", "Deployment", "DynamoComponentDeployment", "LeaderWorkerSet", "PodCliqueSet")
)

PLACE: Mapping[str, str] = dict[str, str].fromkeys(
    (
        *("LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX"),
        *("GROVE_HEADLESS_SERVICE", "GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_INDEX", "GROVE_PCSG_NAME"),
    ),
    "1",
)
"""Variables by which LeaderWorkerSet and Grove give a pod its place in its group."""
_PLACE_REFERENCE = re.compile(r"\$\((LWS|GROVE)_\w+\)")

_USERS_OWN = frozenset(("autoscaling", "data", "extraPodSpec", "ingress"))
"""Fields with labels that are not ours, or without a reader: an ingress may be switched off."""


class Pods(NamedTuple):
    """A pod template: the object that contains it, and the labels of its pods."""

    owner: Object
    labels: dict[str, str]


def assert_all_hold(objects: tuple[Object, ...]) -> None:
    """Everything below."""
    counts = Counter((each["kind"], key_of(each)) for each in objects)
    assert [] == [key for key, count in counts.items() if count > 1]
    for each in objects:
        assert_name_and_labels_fit(each)
    assert_groups_know_their_place(objects)
    assert_selectors_find_their_own(objects)


def assert_name_and_labels_fit(wanted: Object) -> None:
    """The name, and all labels, keys of annotations and selectors inside the object, keep their limits."""
    name = wanted["metadata"]["name"]
    if wanted["kind"] in _NAMES_OF_63:
        assert len(name) <= 63
        assert _DNS_LABEL.fullmatch(name)
    assert len(name) <= 253
    assert _SUBDOMAIN.fullmatch(name)
    for each in _label_maps(wanted):
        for key, value in each.items():
            assert_is_key(key)
            assert len(value) <= 63
            assert _VALUE.fullmatch(value)


def assert_is_key(key: str) -> None:
    """A key of a label or an annotation keeps its limits."""
    domain, slash, name = key.rpartition("/")
    assert name
    assert len(name) <= 63
    assert _VALUE.fullmatch(name)
    assert not slash or (len(domain) <= 253 and _SUBDOMAIN.fullmatch(domain))


def _label_maps(value: Any, field: str = "") -> Iterator[dict[str, str]]:
    """All labels and selectors that we write inside an object; not those inside the user's pod spec."""
    if isinstance(value, list):
        for each in value:
            yield from _label_maps(each, field)
    elif isinstance(value, dict) and "containers" not in value:  # pod specs are the user's
        if field in ("labels", "matchLabels", "selector") and all(
            isinstance(each, str) for each in value.values()
        ):
            yield value
            return
        for name, each in value.items():
            if name == "annotations":
                for key in each:
                    assert_is_key(key)
            elif name not in _USERS_OWN:
                yield from _label_maps(each, name)


def assert_groups_know_their_place(objects: Iterable[Object]) -> None:
    """The kubelet leaves no reference to a variable of the orchestrator to a shell, which would run it."""
    for container in containers_of(objects):
        for word in command_line(container, PLACE):
            assert not _PLACE_REFERENCE.search(word), word


def containers_of(value: Any) -> Iterator[Object]:
    """All containers and init containers inside the value."""
    if isinstance(value, Mapping):
        for name in ("containers", "initContainers"):
            yield from value.get(name) or ()
    children = value.values() if isinstance(value, Mapping) else value
    for each in children if not isinstance(value, str) else ():
        if isinstance(each, Mapping | list | tuple):
            yield from containers_of(each)


def pods_of(objects: tuple[Object, ...]) -> list[Pods]:
    """All pod templates."""
    found: list[Pods] = []
    for each in objects:
        spec = each.get("spec", {})
        match each["kind"]:
            case "Deployment":
                found.append(Pods(each, spec["template"]["metadata"]["labels"]))
            case "LeaderWorkerSet":
                group = spec["leaderWorkerTemplate"]
                for side in ("leaderTemplate", "workerTemplate"):
                    found.append(Pods(each, group[side]["metadata"]["labels"]))
            case "PodCliqueSet":
                found += (Pods(each, clique["labels"]) for clique in spec["template"]["cliques"])
    return found


def assert_selectors_find_their_own(objects: tuple[Object, ...]) -> None:
    """Each selector matches all pods that it is about, and no other pod of the graph."""
    pods = pods_of(objects)
    for each in objects:
        if each["kind"] not in ("Deployment", "InferencePool", "PodDisruptionBudget", "Service"):
            continue
        found = each["spec"]["selector"]
        selector = found.get("matchLabels", found).items()
        matched = [one for one in pods if selector <= one.labels.items()]
        assert [one for one in pods if _belongs(one, each)] == matched, each["metadata"]["name"]


def _belongs(pods: Pods, selecting: Object) -> bool:
    """Whether the object's selector must match these pods, from the purpose of the object."""
    own: dict[str, str] = selecting["metadata"].get("labels", {})
    is_debug = labels.TARGET_TYPE in pods.labels
    is_same = own.get(labels.COMPONENT) == pods.labels[labels.COMPONENT]
    match selecting["kind"]:
        case "Deployment":
            return pods.owner is selecting
        case "InferencePool":
            at: str = selecting["spec"]["selector"]["matchLabels"][labels.DYNAMO_NAMESPACE]
            is_frontend = pods.labels.get(labels.COMPONENT_TYPE) == "frontend"
            return is_frontend and at == pods.labels[labels.DYNAMO_NAMESPACE]
        case "PodDisruptionBudget":
            is_alone = labels.SELECTOR in selecting["spec"]["selector"]["matchLabels"]
            return is_same and pods.owner["kind"] == "Deployment" and not (is_alone and is_debug)
    if labels.BASE_MODEL_HASH in own and labels.COMPONENT not in own:
        return own[labels.BASE_MODEL_HASH] == pods.labels.get(labels.BASE_MODEL_HASH)
    is_for_debug = labels.TARGET_TYPE in selecting["spec"]["selector"]
    is_leader = pods.owner["kind"] != "LeaderWorkerSet" or pods.labels[labels.ROLE] == "leader"
    return is_same and is_leader and (is_debug or not is_for_debug)
