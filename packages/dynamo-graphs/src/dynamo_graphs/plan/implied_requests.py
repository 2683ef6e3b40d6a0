"""Keep device requests that an earlier version of ours wrote although the limit implies them.

A request that repeats its limit is left out today (`render/resources.py`). Pods are the same with and without
it, so an upgrade must not restart them: such a workload keeps its templates while nothing else differs.
"""

from collections import Counter
from collections.abc import Iterator

from dynamo_graphs.plan.templates import WORKLOADS, are_same, mapped, units, with_units
from kube_runtime.kind import Fields, Object


def may_have_more_requests(wanted: Object, live: bytes) -> bool:
    """Whether the spec of a live workload, in JSON, may request devices that `wanted` only limits.

    Cheap, since it is asked at every reconcile: it counts names and decodes nothing.
    """
    if wanted["kind"] not in WORKLOADS:
        return False
    limited: Counter[str] = Counter()
    for unit in units(wanted).values():
        for container in _containers(unit):
            limited.update(_implied(container.get("resources") or {}).keys())
    return any(live.count(f'"{name}"'.encode()) > count for name, count in limited.items())


def with_live_requests(wanted: Object, live: Object) -> Object:
    """The workload to apply, with the templates of `live` that say nothing but an implied request more."""
    theirs = units(live)
    kept: dict[str, Object] = {}
    for name, ours in units(wanted).items():
        if name not in theirs or are_same(wanted["kind"], ours, theirs[name]):
            continue
        repeated = mapped(ours, _with_implied)
        if are_same(wanted["kind"], repeated, mapped(theirs[name], _with_implied)):
            kept[name] = _as_running(ours, theirs[name])
    return with_units(wanted, kept) if kept else wanted


def _as_running(ours: Object, theirs: Object) -> Object:
    """Our templates with the resources that run."""
    found = dict(ours)
    for name, template in ours.items():
        if isinstance(template, dict):
            running = {each["name"]: each for each in theirs[name]["spec"]["containers"]}
            containers = [
                {**each, "resources": running[each["name"]]["resources"]}
                if "resources" in each
                else each
                for each in template["spec"]["containers"]
            ]
            found[name] = {**template, "spec": {**template["spec"], "containers": containers}}
    return found


def _containers(unit: Object) -> Iterator[Object]:
    for template in unit.values():
        if isinstance(template, dict):
            yield from template["spec"]["containers"]


def _with_implied(template: Object) -> Object:
    """The template with every request that a limit implies."""
    containers = []
    for each in template["spec"]["containers"]:
        resources: Object = each.get("resources") or {}
        if implied := _implied(resources):
            requests = {**resources.get("requests", {}), **implied}
            containers.append({**each, "resources": {**resources, "requests": requests}})
        else:
            containers.append(each)
    return {**template, "spec": {**template["spec"], "containers": containers}}


def _implied(resources: Object) -> Object:
    """The limits of devices that are not requested."""
    requests: Fields = resources.get("requests") or {}
    limits: Fields = resources.get("limits") or {}
    return {name: each for name, each in limits.items() if "/" in name and name not in requests}
