"""The pod template that a service of v1alpha1 has in v1beta1, and what an earlier template adds to it."""

from collections import defaultdict, deque
from typing import Final

from dynamo_operator.versions.containers import (
    MAIN,
    PROBES,
    SIDECAR,
    Mounts,
    Place,
    containers_of,
    env_from_secret,
    has_more_than_a_name,
    laid_over,
    merged,
    mounts_of,
    name_of,
    named,
    place_of,
)
from dynamo_operator.versions.resources import container_resources, survive
from kube_runtime.types.meta import Fields, Object

_NEEDS_TEMPLATE: Final = frozenset(
    {"resources", "envs", "envFromSecret", *PROBES, "extraPodMetadata", "frontendSidecar"}
)


def has_content(extra_pod_spec: Fields) -> bool:
    """Whether an `extraPodSpec` says more than the name of the main container."""
    is_more = bool(extra_pod_spec.keys() - {"mainContainer"})
    return is_more or has_more_than_a_name(extra_pod_spec.get("mainContainer", {}))


def needs_template(service: Fields) -> bool:
    """Whether a service says anything of its pods; a compilation cache alone has its own field."""
    return (
        not _NEEDS_TEMPLATE.isdisjoint(service)
        or has_content(service.get("extraPodSpec", {}))
        or any(not mount.get("useAsCompilationCache") for mount in service.get("volumeMounts", []))
    )


def pod_template(service: Fields) -> Object:
    """The pod template of a service: `main` first, then its other containers."""
    extra = service.get("extraPodSpec", {})
    main = {"name": MAIN, **main_container(service)}
    others = [container for container in extra.get("containers", []) if name_of(container) != MAIN]
    if "frontendSidecar" in service and named(others, SIDECAR) is None:
        others.append(_sidecar(service["frontendSidecar"]))
    spec = {name: value for name, value in extra.items() if name not in ("mainContainer", "containers")}
    template: Object = {"spec": {**spec, "containers": [main, *others]}}
    metadata = service.get("extraPodMetadata")
    return {"metadata": metadata, **template} if metadata else template


def main_container(service: Fields) -> Object:
    """What a service says of `main`, in its own fields and in `mainContainer`, without the name."""
    return merged(dedicated(service), service.get("extraPodSpec", {}).get("mainContainer", {}))


def dedicated(service: Fields) -> Object:
    """What a service says of `main` in its own fields."""
    main: Object = {
        "resources": container_resources(service.get("resources", {})),
        "env": service.get("envs"),
        "envFrom": env_from_secret(service.get("envFromSecret")),
        "volumeMounts": [container_mount(mount) for mount in service.get("volumeMounts", [])],
    }
    probes = {probe: service[probe] for probe in PROBES if probe in service}
    return {**{name: value for name, value in main.items() if value}, **probes}


def container_mount(mount: Fields) -> Object:
    """The mount of a container that an entry of a service's `volumeMounts` stands for."""
    names = {"name": "name", "mountPoint": "mountPath"}
    return {names[name]: value for name, value in mount.items() if name in names}


def _sidecar(sidecar: Fields) -> Object:
    fields = {
        "image": sidecar.get("image"),
        "args": sidecar.get("args"),
        "env": sidecar.get("envs"),
        "envFrom": env_from_secret(sidecar.get("envFromSecret")),
    }
    return {"name": SIDECAR, **{name: value for name, value in fields.items() if value}}


# What an earlier template adds. It is the part of a v1beta1 template that v1alpha1 could not hold.


def restored_template(service: Fields, earlier: Fields, cache: Place | None) -> Object | None:
    """The template of a service with what an earlier one had beside it.

    `cache` is where the compilation cache is mounted. None: neither has anything to say.
    """
    template = pod_template(service)
    earlier_containers = containers_of(earlier)
    containers = _without_generated(service, containers_of(template), earlier_containers, cache)
    earlier_by_name = {name_of(container): container for container in reversed(earlier_containers)}
    names = {name_of(container) for container in containers}
    containers += [
        container
        for container in earlier_containers
        if name_of(container) not in names
        and has_more_than_a_name(container)
        and (name_of(container) != SIDECAR or "frontendSidecar" in service)
    ]
    containers = [
        _completed(container, earlier_by_name.get(name_of(container)), service, cache)
        for container in _ordered_as(containers, earlier_containers)
    ]
    spec = {name: value for name, value in template["spec"].items() if name != "containers"}
    if containers:
        spec["containers"] = containers
    live_metadata = template.get("metadata", {})
    metadata = {**_without_user_metadata(earlier.get("metadata", {})), **live_metadata}
    result = {name: part for name, part in (("metadata", metadata), ("spec", spec)) if part}
    return result if result or not earlier else None


def _without_user_metadata(metadata: Fields) -> Object:
    return {name: value for name, value in metadata.items() if name not in ("labels", "annotations")}


def _without_generated(
    service: Fields, containers: list[Object], earlier: list[Object], cache: Place | None
) -> list[Object]:
    """The containers without a mount, or a `main`, which only the conversion has put there."""
    main, *others = containers
    own_mounts = mounts_of(service.get("extraPodSpec", {}).get("mainContainer"))
    earlier_main = named(earlier, MAIN)
    without_cache = _without_mounts(main, cache)
    if all(place_of(mount) != cache for mount in [*mounts_of(earlier_main), *own_mounts]):
        main = without_cache
    is_generated = earlier_main is None and survive_or_absent(service)
    if is_generated and not has_more_than_a_name(without_cache):
        return others
    return [main, *others]


def survive_or_absent(service: Fields) -> bool:
    """Whether nothing has to be saved of a service's resources."""
    return "resources" not in service or survive(service["resources"])


def _without_mounts(container: Object, place: Place | None) -> Object:
    mounts = [mount for mount in mounts_of(container) if place_of(mount) != place]
    others = {name: value for name, value in container.items() if name != "volumeMounts"}
    return {**others, "volumeMounts": mounts} if mounts else others


def _completed(container: Object, earlier: Object | None, service: Fields, cache: Place | None) -> Object:
    """A container with the fields of an earlier one that v1alpha1 has no place for."""
    if earlier is None or container is earlier:
        return container
    if name_of(container) == MAIN:
        return _with_mount_options(container, earlier, service, cache)
    sidecar = service.get("frontendSidecar")
    if name_of(container) == SIDECAR and sidecar is not None and has_more_than_a_name(earlier):
        secret = sidecar.get("envFromSecret")
        is_same_source = not secret or (_names_secret(earlier, secret) and _names_secret(container, secret))
        live = {"name", "image", "args", "env"} | (set() if is_same_source else {"envFrom"})
        return laid_over(container, {name: value for name, value in earlier.items() if name not in live})
    return container


def _names_secret(container: Fields, secret: str) -> bool:
    sources = container.get("envFrom", [])
    return len(sources) == 1 and sources[0].get("secretRef", {}).get("name") == secret


def _with_mount_options(main: Object, earlier: Object, service: Fields, cache: Place | None) -> Object:
    """The container with what an earlier one says of mounts that stem from the service's own field.

    A compilation cache comes first there. If it did not, and no mount was changed, the earlier order returns.
    """
    own = len(mounts_of(service.get("extraPodSpec", {}).get("mainContainer")))
    mounts, lookup = mounts_of(main), Mounts(mounts_of(earlier))
    completed = [{**(lookup.like(mount) or {}), **mount} for mount in mounts[own:]]
    places, earlier_places = [*map(place_of, completed)], [*map(place_of, mounts_of(earlier))]
    cache_first = [cache, *(place for place in earlier_places if place != cache)]
    if not own and cache in earlier_places and places == cache_first:
        at = dict(zip(places, completed, strict=True))
        completed = [at[place] for place in earlier_places]
    return {**main, "volumeMounts": [*mounts[:own], *completed]} if mounts else main


def _ordered_as(containers: list[Object], earlier: list[Object]) -> list[Object]:
    """The containers in the order of earlier ones of the same names; in their own if the names differ."""
    if len(earlier) < 2 or len(earlier) != len(containers):  # noqa: PLR2004 one has no order
        return containers
    queues: defaultdict[str, deque[Object]] = defaultdict(deque)
    for container in containers:
        queues[name_of(container)].append(container)
    ordered = [queues[name_of(container)].popleft() for container in earlier if queues[name_of(container)]]
    return ordered if len(ordered) == len(containers) else containers
