"""PVCs, shared memory and mounts: each path is mounted once, and each mount has a volume."""

from collections.abc import Iterator

from dynamo_graphs.api.backends import NOOP
from dynamo_graphs.api.component import DynamoComponentDeploymentSpec, SharedMemory, VolumeMount
from dynamo_graphs.api.framework import cache_path
from dynamo_graphs.api.names import SUBDOMAIN_LIMIT, volume_name
from dynamo_graphs.validation import Problem, ProblemKind, component_path
from dynamo_graphs.validation.quantities import quantity_problems
from dynamo_graphs.validation.syntax import is_dns_label, name_problems
from kube_runtime.kind import Fields
from kube_runtime.quantity import amount

_SHARED_MEMORY = "shared-memory"
_SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  # the mount path that POSIX shared memory uses


def volume_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str, framework: str
) -> Iterator[Problem]:
    """Problems of the volumes of a component, and of the mounts of all its containers."""
    yield from _shared_memory_problems(spec.shared_memory, path)
    claims: dict[str, str] = {}
    for index, mount in enumerate(spec.volume_mounts):
        yield from _mount_problems(mount, (path, index), framework, claims)
    main = pod.get("mainContainer") or {}
    container_paths: set[str] = set()
    for index, mount in enumerate(main.get("volumeMounts") or ()):
        at = f"{path}.extraPodSpec.mainContainer.volumeMounts[{index}].mountPath"
        mount_path, name = mount.get("mountPath") or "", mount.get("name")
        if mount_path in claims and name != volume_name(claims[mount_path]):
            yield _path_taken(at, mount_path, claims[mount_path])
        container_paths.add(mount_path)
    needs_memory = not (spec.shared_memory and spec.shared_memory.disabled)
    has_memory = needs_memory and _SHARED_MEMORY_PATH not in claims.keys() | container_paths
    yield from _pod_volume_problems(spec, pod, f"{path}.extraPodSpec", has_memory=has_memory)


def _shared_memory_problems(memory: SharedMemory | None, component: str) -> Iterator[Problem]:
    if memory is None or memory.disabled:
        return
    path = f"{component}.sharedMemory.size"
    if memory.size is None or amount(memory.size) == 0:
        message = (
            f"{component_path(component)}.sharedMemory.size is required when disabled is false"
        )
        yield Problem(path, message, ProblemKind.REQUIRED)
    else:
        yield from quantity_problems(memory.size, path)


def _mount_problems(
    mount: VolumeMount, place: tuple[str, int], framework: str, claims: dict[str, str]
) -> Iterator[Problem]:
    """Problems of one mount. Adds its PVC to `claims`, which are by path."""
    component, index = place
    path = f"{component}.volumeMounts[{index}]"
    if not mount.name:
        yield Problem(f"{path}.name", "missing PVC name", ProblemKind.REQUIRED)
        return
    yield from name_problems(mount.name, f"{path}.name", "a PVC")
    is_cache = mount.use_as_compilation_cache
    mount_path = cache_path(framework, mount.mount_point, is_cache=is_cache)
    at = f"{path}.mountPoint"
    if not mount_path:
        message = (
            f"missing mount point, because {_named(framework)} has no default"
            if is_cache
            else f"{component_path(component)}.volumeMounts[{index}].mountPoint is required when "
            "useAsCompilationCache is false"
        )
        yield Problem(at, message, ProblemKind.REQUIRED)
    elif not mount_path.startswith("/") or ":" in mount_path:
        yield Problem(
            at, f'invalid mount point "{mount_path}" (expected an absolute path without ":")'
        )
    elif claims.setdefault(mount_path, mount.name) != mount.name:
        yield _path_taken(at, mount_path, claims[mount_path])


def _named(framework: str) -> str:
    return "a component without a known backend" if framework == NOOP else framework


def _path_taken(path: str, mount_path: str, claim: str) -> Problem:
    # Many mounts may collide with one PVC, whose invalid name may be long: cut it.
    message = (
        f'duplicate path "{mount_path}", already the mount point of PVC "{claim[:SUBDOMAIN_LIMIT]}"'
    )
    return Problem(path, message, ProblemKind.DUPLICATE)


def _pod_volume_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str, *, has_memory: bool
) -> Iterator[Problem]:
    own = {volume_name(mount.name): mount.name for mount in spec.volume_mounts if mount.name}
    names: set[str] = set()
    for index, volume in enumerate(pod.get("volumes") or ()):
        at, name = f"{path}.volumes[{index}].name", volume.get("name") or ""
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not is_dns_label(name):
            yield Problem(at, f'invalid volume name "{name}"')
        if name in names:
            yield Problem(at, f'duplicate volume "{name}"', ProblemKind.DUPLICATE)
        elif name in own and claim != own[name]:
            message = f'duplicate volume "{name}", already the volume of a PVC in volumeMounts'
            yield Problem(at, message, ProblemKind.DUPLICATE)
        elif name == _SHARED_MEMORY and has_memory:
            message = (
                f'duplicate volume "{name}", already the one at {_SHARED_MEMORY_PATH}: rename '
                "yours or disable sharedMemory"
            )
            yield Problem(at, message, ProblemKind.DUPLICATE)
        names.add(name)
    volumes = names | own.keys() | ({_SHARED_MEMORY} if has_memory else set())
    for at, container in containers_of(pod, path):
        yield from _container_mount_problems(container, at, volumes)


def _container_mount_problems(container: Fields, path: str, volumes: set[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at, name = f"{path}.volumeMounts[{index}]", mount.get("name")
        mount_path = mount.get("mountPath")
        if not mount_path:
            yield Problem(f"{at}.mountPath", "missing path", ProblemKind.REQUIRED)
        elif mount_path in seen:
            yield Problem(
                f"{at}.mountPath", f'duplicate path "{mount_path}"', ProblemKind.DUPLICATE
            )
        if name not in volumes:
            yield Problem(f"{at}.name", f'volume "{name or ""}" not found')
        seen.add(mount_path or "")


def containers_of(pod: Fields, path: str) -> Iterator[tuple[str, Fields]]:
    """Every container of the user's pod spec, with its path; the main container first."""
    if pod.get("mainContainer"):
        yield f"{path}.mainContainer", pod["mainContainer"]
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field) or ()):
            yield f"{path}.{field}[{index}]", container
