"""The pod template of a service with what an earlier template had, and the service could not hold."""

from collections import defaultdict, deque

from dynamo_operator.versions.containers import (
    MAIN,
    SIDECAR,
    by_name,
    containers_of,
    has_more_than_a_name,
    laid_over,
    name_of,
    named,
)
from dynamo_operator.versions.mounts import Place, inner_mounts, mounts_of, place_of, with_options
from dynamo_operator.versions.parts import present, without
from dynamo_operator.versions.pod_template import pod_template
from dynamo_operator.versions.resources import come_back
from kube_runtime.types.meta import Fields, Object


def restored_template(service: Fields, earlier: Fields, cache: Place | None) -> Object | None:
    """The template of a service, completed. None: neither it nor the earlier one says anything.

    `cache` is where the service mounts its compilation cache.
    """
    template, earlier_containers = pod_template(service), containers_of(earlier)
    main, *others = containers_of(template)
    is_generated = named(earlier_containers, MAIN) is None and _is_generated(main, service, cache)
    containers = (
        others if is_generated else [_without_hidden(main, service, earlier_containers, cache), *others]
    )
    names = {name_of(container) for container in containers}
    containers += [
        container
        for container in earlier_containers
        if name_of(container) not in names
        and has_more_than_a_name(container)
        and (name_of(container) != SIDECAR or "frontendSidecar" in service)
    ]
    at = by_name(earlier_containers)
    completed = [
        _completed(container, at.get(name_of(container)), service, cache)
        for container in _ordered_as(containers, earlier_containers)
    ]
    result = present(
        metadata={
            **without(earlier.get("metadata", {}), "labels", "annotations"),
            **template.get("metadata", {}),
        },
        spec={**without(template["spec"], "containers"), **present(containers=completed)},
    )
    return result if result or not earlier else None


def _is_generated(main: Object, service: Fields, cache: Place | None) -> bool:
    """Whether the service says nothing of `main`: it is only there because a template has one."""
    return come_back(service.get("resources")) and not has_more_than_a_name(_without_mounts(main, cache))


def _without_hidden(main: Object, service: Fields, earlier: list[Object], cache: Place | None) -> Object:
    """The container without the mount of a compilation cache that the earlier one did not mount."""
    places = {place_of(mount) for mount in [*mounts_of(named(earlier, MAIN)), *inner_mounts(service)]}
    return main if cache in places else _without_mounts(main, cache)


def _without_mounts(container: Object, place: Place | None) -> Object:
    mounts = [mount for mount in mounts_of(container) if place_of(mount) != place]
    return {**without(container, "volumeMounts"), **present(volumeMounts=mounts)}


def _completed(container: Object, earlier: Object | None, service: Fields, cache: Place | None) -> Object:
    """A container with the fields of an earlier one that v1alpha1 has no place for."""
    if earlier is None or container is earlier:
        return container
    if name_of(container) == MAIN:
        inner = inner_mounts(service)
        mounts = mounts_of(container)[len(inner) :]
        completed = with_options(mounts, mounts_of(earlier), None if inner else cache)
        return {**container, **present(volumeMounts=[*inner, *completed])}
    if name_of(container) == SIDECAR and "frontendSidecar" in service and has_more_than_a_name(earlier):
        secret = service["frontendSidecar"].get("envFromSecret")
        is_same_source = not secret or (_names_secret(earlier, secret) and _names_secret(container, secret))
        live = ("name", "image", "args", "env", *(() if is_same_source else ("envFrom",)))
        return laid_over(container, without(earlier, *live))
    return container


def _names_secret(container: Fields, secret: str) -> bool:
    sources = container.get("envFrom", [])
    return len(sources) == 1 and sources[0].get("secretRef", {}).get("name") == secret


def _ordered_as(containers: list[Object], earlier: list[Object]) -> list[Object]:
    """The containers in the order of earlier ones of the same names; in their own if the names differ."""
    if len(earlier) < 2 or len(earlier) != len(containers):  # noqa: PLR2004 one has no order
        return containers
    queues: defaultdict[str, deque[Object]] = defaultdict(deque)
    for container in containers:
        queues[name_of(container)].append(container)
    ordered = [queues[name_of(container)].popleft() for container in earlier if queues[name_of(container)]]
    return ordered if len(ordered) == len(containers) else containers
