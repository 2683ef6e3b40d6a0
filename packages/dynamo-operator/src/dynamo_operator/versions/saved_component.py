"""What is saved of a component of v1beta1, because a service of v1alpha1 cannot hold it."""

from dynamo_operator.versions.component import has_block
from dynamo_operator.versions.containers import (
    MAIN,
    by_name,
    comparable,
    containers_of,
    has_more_than_a_name,
    name_of,
    named,
)
from dynamo_operator.versions.mounts import Lookup, mounts_of, place_of
from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.pod_template import needs_template, pod_template
from kube_runtime.types.meta import Fields, Object


def saved_component(component: Fields, service: Fields) -> Object:
    """The part of a component to be saved, without its name; empty if there is none."""
    saved: Object = {}
    if "frontendSidecar" in component and "frontendSidecar" not in service:
        saved["frontendSidecar"] = component["frontendSidecar"]
    if "podTemplate" in component:
        target = saved.get("frontendSidecar")
        template = _saved_template(component["podTemplate"], service, target)
        if template is not None:
            saved["podTemplate"] = template
    experimental = component.get("experimental")
    if experimental is not None:
        kept = some(experimental, ["grove"]) if has_block(experimental) else experimental
        if kept or not experimental:
            saved["experimental"] = kept
    return saved


def _saved_template(template: Fields, service: Fields, target: str | None) -> Object | None:
    """The part of a pod template that the one built of the service lacks. None: it lacks nothing."""
    rebuilt = pod_template(service) if needs_template(service) else None
    containers, rebuilt_containers = containers_of(template), containers_of(rebuilt or {})
    is_generated = rebuilt is not None and named(containers, MAIN) is None
    names = [name_of(container) for container in containers]
    rebuilt_names = [name_of(container) for container in rebuilt_containers]
    if is_generated:
        rebuilt_names.remove(MAIN)
    keeps_order = names != rebuilt_names
    metadata = without(template.get("metadata", {}), "labels", "annotations")
    is_marked = is_generated or (not template and rebuilt is None)
    is_same = _are_same(containers, rebuilt_containers)
    is_target_saved = target is not None and target in names
    if is_same and not (metadata or keeps_order or is_target_saved or is_marked):
        return None
    at = by_name(rebuilt_containers)
    saved = []
    for container in containers:
        other = at.get(name_of(container))
        entry = _saved_container(container, other)
        if keeps_order or name_of(container) == target or _is_listed(container, entry, other):
            saved.append(entry)
    if not (metadata or saved or is_marked):
        return None
    return present(metadata=metadata, spec=present(containers=saved))


def _is_listed(container: Object, entry: Object, rebuilt: Object | None) -> bool:
    """Whether a container has to be named: `main` also if the rebuilt one says more than it does."""
    if not name_of(container) or has_more_than_a_name(entry):
        return True
    if name_of(container) != MAIN:
        return False
    places = {*map(place_of, mounts_of(container))}
    return not has_more_than_a_name(container) or not places.issuperset(map(place_of, mounts_of(rebuilt)))


def _saved_container(container: Object, rebuilt: Object | None) -> Object:
    """The name of a container, and what the rebuilt one lacks."""
    entry = some(container, ["name"])
    if container.get("name") == MAIN:
        if mounts := mounts_of(container):
            entry["volumeMounts"] = _saved_mounts(mounts, mounts_of(rebuilt))
    elif rebuilt is None:
        entry = container
    elif not _are_same([container], [rebuilt]):
        is_same_source = container.get("envFrom") == rebuilt.get("envFrom")
        entry = without(container, "image", "args", "env", *(["envFrom"] if is_same_source else []))
    return entry


def _are_same(containers: list[Object], others: list[Object]) -> bool:
    """Whether containers are equal, and their quantities in canonical form."""
    return containers == others or [*map(comparable, containers)] == [*map(comparable, others)]


def _saved_mounts(mounts: list[Object], rebuilt: list[Object]) -> list[Object]:
    """Volume and path of each mount, or all of it if the rebuilt one differs."""
    lookup = Lookup(rebuilt)
    return [some(mount, ("name", "mountPath")) if lookup.like(mount) == mount else mount for mount in mounts]
