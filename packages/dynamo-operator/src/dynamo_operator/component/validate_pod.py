"""The rules of what users write about pods: JSON types, images, quantities, variables, volumes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from dynamo_operator import labels
from dynamo_operator.component.api import (
    NOOP,
    WORKER_TYPES,
    ComponentSpec,
    DynamoComponentDeploymentSpec,
    ResourceItem,
    Resources,
    SharedMemory,
    VolumeMount,
)
from dynamo_operator.component.framework import GPU, cache_path
from dynamo_operator.graph.replicas import VARIABLE, folded
from dynamo_operator.names import (
    PLANNER_SERVICE_ACCOUNT,
    PROFILING_SERVICE_ACCOUNT,
    SUBDOMAIN_LIMIT,
    volume_name,
)
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import (
    MOST_REPLICAS,
    Problem,
    ProblemKind,
    component_path,
    counted,
    is_dns_label,
    is_qualified_name,
    name_problems,
    shown,
)
from kube_runtime.crd import embedded
from kube_runtime.kind import Fields, Object
from kube_runtime.quantity import amount, is_whole

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))


class _Entry(NamedTuple):
    path: str
    amount: Decimal


def quantity_problems(text: object, path: str) -> Iterator[Problem]:
    """Report a value that is negative or not a quantity."""
    number = amount(text) if isinstance(text, str | int) and not isinstance(text, bool) else None
    if number is None:
        expected = "expected a number, for example 2, 500m or 16Gi"
        yield Problem(path, f'invalid quantity "{text}" ({expected})')
    elif number < 0:
        yield Problem(path, f'invalid quantity "{text}" (must not be negative)')


def resource_problems(
    container: Fields, container_path: str, component: Resources | None, path: str
) -> Iterator[Problem]:
    """Problems of the container's resources, with the component's short form merged over them."""
    short = component or Resources()
    sides: dict[str, dict[str, _Entry]] = {}
    opposite = {"requests": short.limits, "limits": short.requests}
    for side, item in (("requests", short.requests), ("limits", short.limits)):
        written = {
            name: (f"{container_path}.{side}[{name}]", value)
            for name, value in (container.get(side) or {}).items()
            if value is not None
        }
        written |= _written(item, opposite[side], f"{path}.{side}")
        for name, (at, value) in written.items():
            yield from _quantity_problems(name, value, at)
        sides[side] = {
            name: _Entry(at, number)
            for name, (at, value) in written.items()
            if isinstance(value, str | int) and (number := amount(value)) is not None
        }
    yield from _agreement_problems(sides["requests"], sides["limits"])


def _written(
    item: ResourceItem | None, opposite: ResourceItem | None, path: str
) -> dict[str, tuple[str, str]]:
    """The path and amount of each resource in the short form, by its Kubernetes name."""
    if item is None:
        return {}
    gpu = item.gpu_type or (opposite.gpu_type if opposite else None) or GPU
    fixed = {
        "cpu": (f"{path}.cpu", item.cpu),
        "memory": (f"{path}.memory", item.memory),
        gpu: (f"{path}.gpu", item.gpu),
    }
    custom = {name: (f"{path}.custom[{name}]", value) for name, value in item.custom.items()}
    return {name: (at, value) for name, (at, value) in (fixed | custom).items() if value}


def _quantity_problems(name: str, value: Any, path: str) -> Iterator[Problem]:
    is_known = name in _NATIVE or name.startswith("hugepages-") or "/" in name
    if not is_known or not is_qualified_name(name):
        yield Problem(
            path,
            f'unknown resource "{name}" (expected cpu, memory, ephemeral-storage, '
            "hugepages-<size> or a name with a domain such as nvidia.com/gpu)",
            ProblemKind.NOT_SUPPORTED,
        )
    problems = list(quantity_problems(value, path))
    yield from problems
    if (
        not problems
        and "/" in name
        and (number := amount(value)) is not None
        and not is_whole(number)
    ):
        yield Problem(path, f'invalid quantity "{value}" of {name} (expected a whole number)')


def _agreement_problems(
    requests: Mapping[str, _Entry], limits: Mapping[str, _Entry]
) -> Iterator[Problem]:
    for name in sorted(requests.keys() & limits.keys()):
        request, limit = requests[name], limits[name]
        is_shared = name in _NATIVE or "kubernetes.io/" in name
        if not is_shared and request.amount != limit.amount:
            yield Problem(
                request.path,
                f"request and limit of {name} must be equal, because it cannot be overcommitted",
            )
        elif request.amount > limit.amount:
            yield Problem(request.path, f"the request of {name} must not exceed its limit")


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


Shape: TypeAlias = "type | Mapping[str, Shape] | list[Shape]"

ENTRIES: Mapping[str, Shape] = {}
"""An object whose fields are not read one by one."""

ENVIRONMENT: Shape = [{"name": str, "value": str, "valueFrom": ENTRIES}]
PROBE: Mapping[str, Shape] = {
    "exec": {"command": [str]},
    "httpGet": {"path": str, "host": str, "scheme": str},
    "tcpSocket": {"host": str},
    "grpc": {"port": int, "service": str},
    "initialDelaySeconds": int,
    "periodSeconds": int,
    "timeoutSeconds": int,
    "successThreshold": int,
    "failureThreshold": int,
}
CONTAINER: Mapping[str, Shape] = {
    "name": str,
    "image": str,
    "command": [str],
    "args": [str],
    "env": ENVIRONMENT,
    "envFrom": [ENTRIES],
    "ports": [{"name": str, "containerPort": int, "hostPort": int, "protocol": str}],
    "volumeMounts": [{"name": str, "mountPath": str}],
    "resources": {"limits": ENTRIES, "requests": ENTRIES, "claims": [{"name": str}]},
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "startupProbe": PROBE,
}
POD: Mapping[str, Shape] = {
    "mainContainer": CONTAINER,
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
    "imagePullSecrets": [{"name": str}],
    "resourceClaims": [{"name": str}],
    "restartPolicy": str,
    "serviceAccount": str,
    "serviceAccountName": str,
    "terminationGracePeriodSeconds": int,
    "securityContext": ENTRIES,
}
_WORDS: dict[type, str] = {str: "text", int: "an integer"}


# Those parts stay plain JSON, so that unknown fields survive. The API server checks them against
# the full schema. Documents that do not come from it get at least this check of the fields that
# rendering reads.
def shape_problems(value: object, shape: Shape, path: str) -> Iterator[Problem]:
    """Report each field whose type is not the one in `shape`; null counts as unset."""
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape) or isinstance(value, bool):
            yield Problem(path, f"expected {_WORDS[shape]}")
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            yield Problem(path, "expected a list")
            return
        for index, item in enumerate(value):
            if item is None:
                yield Problem(f"{path}[{index}]", "expected a value, found null")
            yield from shape_problems(item, shape[0], f"{path}[{index}]")
    elif not isinstance(value, Mapping):
        yield Problem(path, "expected an object")
    else:
        for name, inner in shape.items():
            yield from shape_problems(value.get(name), inner, f"{path}.{name}")


_PLACEHOLDER = re.compile(r"<[^<>]*>|\$?\{\{?[^{}]*\}|\$\(?\w+")
"""`<your-registry>`, `${IMAGE}`, `{{ .Values.image }}`, `$IMAGE`. No image reference has such characters."""


# Rules of admission and of `dynamoctl lint`. The controllers do not apply them: a pod with such an
# image fails alone, and its reason names the image.
def image_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Report images that are placeholders."""
    pod, place = spec.extra_pod_spec or {}, f"{path}.extraPodSpec"
    if any(shape_problems(pod, POD, place)):
        return  # reported by the rules of the component
    for at, container in containers_of(pod, place):
        yield from placeholder_problems(container.get("image"), f"{at}.image")


def placeholder_problems(image: object, path: str) -> Iterator[Problem]:
    """Report a text in place of an image that contains a placeholder."""
    if isinstance(image, str) and (match := _PLACEHOLDER.search(image)):
        message = f"{shown(image)} is not an image reference: {shown(match[0])} is a placeholder"
        yield Problem(path, message)


def image_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of images whose content may change."""
    for at, container in containers_of(spec.extra_pod_spec or {}, f"{path}.extraPodSpec"):
        image = container.get("image")
        if not isinstance(image, str) or not image or "@" in image:
            continue
        _, colon, tag = image.rpartition("/")[2].partition(":")
        if not colon:
            message = (
                f'image "{image}" has no tag, so latest is used: pods may run different versions'
            )
            yield Problem(f"{at}.image", message)
        elif tag == "latest":
            message = f'image "{image}" may change at any time: pods may run different versions'
            yield Problem(f"{at}.image", message)


# The operator reads replicas and resources of services from that JSON; the rest belongs to the
# process.
def shared_environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables whose JSON types are not checked yet."""
    has_wrong_types = yield from counted(shape_problems(entries, ENVIRONMENT, path))
    if not has_wrong_types:
        yield from environment_problems(entries, path)


def environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables that have the right JSON types.

    A repeated name is valid here: in `envs` the later entry wins.
    """
    yield from _variable_problems(entries, path)
    yield from _config_problems(entries, path)


def unique_environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of the variables of a container, where each name may appear once."""
    yield from _variable_problems(entries, path)
    seen = set[str]()
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if name and name in seen:
            message = f'duplicate variable "{name}"'
            yield Problem(f"{path}[{index}].name", message, ProblemKind.DUPLICATE)
        if name:
            seen.add(name)


def _variable_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of each variable, as the API server reports them."""
    for index, entry in enumerate(entries):
        at = f"{path}[{index}]"
        name = entry.get("name")
        if not name:
            message = "missing name of an environment variable"
            yield Problem(f"{at}.name", message, ProblemKind.REQUIRED)
        elif "=" in name or not name.isascii() or not name.isprintable():
            message = f'invalid variable name "{name}" (expected ASCII without "=")'
            yield Problem(f"{at}.name", message)
        source = entry.get("valueFrom")
        if source is not None and entry.get("value"):
            yield Problem(f"{at}.valueFrom", "value and valueFrom must not both be set")
        if source is not None and sum(reference is not None for reference in source.values()) != 1:
            yield Problem(f"{at}.valueFrom", "expected exactly one source")


def _config_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of the JSON in each `DYN_DEPLOYMENT_CONFIG`."""
    for index, entry in enumerate(entries):
        if entry.get("name") != VARIABLE:
            continue
        at = f"{path}[{index}].value"
        try:
            config = json.loads(entry.get("value") or "")
        except ValueError as error:
            yield Problem(at, f"invalid JSON: {error}")
            continue
        except RecursionError:
            yield Problem(at, "invalid JSON: it is nested too deeply")
            continue
        if not isinstance(config, dict):
            yield Problem(at, "expected a JSON object with one entry per service")
            continue
        for service, sizes in config.items():
            if isinstance(sizes, dict):
                yield from _service_problems(folded(sizes).get("serviceargs"), f"{at}[{service}]")


def _service_problems(arguments: object, path: str) -> Iterator[Problem]:
    if arguments is None:
        return
    at = f"{path}.ServiceArgs"
    if not isinstance(arguments, dict):
        yield Problem(at, "expected an object")
        return
    workers = folded(arguments).get("workers")
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not (is_number and 0 <= workers <= MOST_REPLICAS):
        yield Problem(f"{at}.workers", f"expected a number from 0 to {MOST_REPLICAS}")
    resources = folded(arguments).get("resources")
    if resources is None:
        return
    if not isinstance(resources, dict):
        yield Problem(f"{at}.resources", "expected an object")
        return
    for name, value in _amounts(folded(resources), f"{at}.resources"):
        if isinstance(value, str):
            yield from quantity_problems(value, name)
        else:
            yield Problem(name, "expected a string, for example a quoted number")


def _amounts(resources: Fields, path: str) -> Iterator[tuple[str, object]]:
    """Every amount that is set, with its path."""
    custom = resources.get("custom")
    if isinstance(custom, dict):
        yield from ((f"{path}.custom[{name}]", value) for name, value in custom.items())
    elif custom is not None:
        yield f"{path}.custom", custom
    for name in ("cpu", "memory", "gpu"):
        if resources.get(name) not in (None, ""):
            yield f"{path}.{name}", resources[name]


_PROBED_TYPES = WORKER_TYPES | {"frontend"}
"""Component types with default liveness and readiness probes, over which the user's are merged."""
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NUMBERS = (
    "initialDelaySeconds",
    "periodSeconds",
    "timeoutSeconds",
    "successThreshold",
    "failureThreshold",
)
_NOT_IN_DEPLOYMENTS = ("activeDeadlineSeconds", "ephemeralContainers")
_PLANNER = "planner"
_DEBUGGER = "debugger"
_MAX_PORT = 65535


# Not all rules of a pod: only those that depend on what the operator adds, and those that would
# otherwise fail two objects further down, such as names of containers, ports, probes, images, and
# what Deployments do not support.
def pod_problems(spec: DynamoComponentDeploymentSpec, pod: Fields, path: str) -> Iterator[Problem]:
    """Problems of the user's pod spec, whose JSON types are right."""
    main = pod.get("mainContainer") or {}
    at = f"{path}.mainContainer"
    if not (main.get("image") or "").strip():
        message = "missing image (there is no default)"
        yield Problem(f"{at}.image", message, ProblemKind.REQUIRED)
    yield from unique_environment_problems(main.get("env") or (), f"{at}.env")
    yield from _main_probe_problems(spec, main, at)
    yield from _container_problems(spec, pod, path)
    yield from _field_problems(pod, path)


def _main_probe_problems(
    spec: DynamoComponentDeploymentSpec, main: Fields, path: str
) -> Iterator[Problem]:
    has_default = spec.component_type in _PROBED_TYPES
    for name in ("livenessProbe", "readinessProbe"):
        if main.get(name) is not None:
            yield from probe_problems(main[name], f"{path}.{name}", may_lack_handler=has_default)
    if main.get("startupProbe"):
        yield from probe_problems(
            main["startupProbe"],
            f"{path}.startupProbe",
            may_lack_handler=spec.component_type in WORKER_TYPES,
        )


def _container_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str
) -> Iterator[Problem]:
    main = pod.get("mainContainer") or {}
    taken = {main.get("name") or "main": "the main container"}
    if spec.annotations.get(labels.DEBUG_MODE) == "true" or (
        spec.annotations.get(labels.STEALING_DEBUG_MODE) == "true"
    ):
        taken[_DEBUGGER] = "the debugger"
    for at, container in containers_of(pod, path):
        yield from _port_problems(container, at)
        name = container.get("name") or ""
        if at.endswith(".mainContainer"):
            if name and not is_dns_label(name):
                yield Problem(f"{at}.name", f'invalid container name "{name}"')
            continue
        if name in taken:
            message = f'duplicate container name "{name}", already used by {taken[name]}'
            yield Problem(f"{at}.name", message, ProblemKind.DUPLICATE)
        elif not is_dns_label(name):
            yield Problem(f"{at}.name", f'invalid container name "{name}"')
        taken[name] = "another container"
        if not (container.get("image") or "").strip():
            yield Problem(f"{at}.image", "missing image", ProblemKind.REQUIRED)
        yield from unique_environment_problems(container.get("env") or (), f"{at}.env")
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(probe) is not None:
                yield from probe_problems(container[probe], f"{at}.{probe}")


def _port_problems(container: Fields, path: str) -> Iterator[Problem]:
    seen: set[tuple[object, str]] = set()
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        at = f"{path}.ports[{index}]"
        number, name = port.get("containerPort"), port.get("name")
        protocol = port.get("protocol") or "TCP"
        if number is None or not 0 < number <= _MAX_PORT:
            yield Problem(f"{at}.containerPort", f"must be between 1 and {_MAX_PORT}")
        elif (number, protocol) in seen:
            message = f"duplicate port {number}/{protocol}"
            yield Problem(f"{at}.containerPort", message, ProblemKind.DUPLICATE)
        if protocol not in ("TCP", "UDP", "SCTP"):
            yield Problem(f"{at}.protocol", "expected TCP, UDP or SCTP", ProblemKind.NOT_SUPPORTED)
        if name and not is_port_name(name):
            yield Problem(f"{at}.name", f'invalid port name "{name}"')
        elif name and name in names:
            yield Problem(f"{at}.name", f'duplicate port name "{name}"', ProblemKind.DUPLICATE)
        seen.add((number, protocol))
        names.add(name or "")


def _field_problems(pod: Fields, path: str) -> Iterator[Problem]:
    if pod.get("restartPolicy") not in (None, "", "Always"):
        message = "components run until they are deleted (expected Always)"
        yield Problem(f"{path}.restartPolicy", message, ProblemKind.NOT_SUPPORTED)
    if (pod.get("terminationGracePeriodSeconds") or 0) < 0:
        yield Problem(f"{path}.terminationGracePeriodSeconds", "must not be negative")
    for field in _NOT_IN_DEPLOYMENTS:
        if pod.get(field):
            yield Problem(f"{path}.{field}", "not supported by Deployments", ProblemKind.FORBIDDEN)
    yield from _empty_list_problems(pod, embedded("ExtraPodSpec"), path)
    yield from _unique_name_problems(pod, "imagePullSecrets", path)
    yield from _unique_name_problems(pod, "resourceClaims", path)


def _unique_name_problems(pod: Fields, field: str, path: str) -> Iterator[Problem]:
    names: set[str] = set()
    for index, entry in enumerate(pod.get(field) or ()):
        at, name = f"{path}.{field}[{index}].name", entry.get("name") or ""
        if not name:
            yield Problem(at, "missing name", ProblemKind.REQUIRED)
        elif name in names:
            yield Problem(at, f'duplicate name "{name}"', ProblemKind.DUPLICATE)
        names.add(name)


def _empty_list_problems(value: object, schema: Object, path: str) -> Iterator[Problem]:
    """Report each empty list that the schema requires.

    Rendering drops empty lists, so the API server would complain about a missing field that the user wrote.
    """
    if not schema:
        return  # nothing is required below a key that the schema does not know
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _empty_list_problems(item, schema.get("items", {}), f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    required, properties = schema.get("required", ()), schema.get("properties", {})
    for name, inner in value.items():
        at = f"{path}.{name}"
        if name in required and isinstance(inner, list | tuple) and not inner:
            yield Problem(at, "expected at least one entry", ProblemKind.REQUIRED)
        yield from _empty_list_problems(inner, properties.get(name, {}), at)


def probe_problems(
    probe: Fields, path: str, *, may_lack_handler: bool = False
) -> Iterator[Problem]:
    """Problems of a probe. `may_lack_handler` is for one that is merged over a default."""
    given = [name for name in HANDLERS if probe.get(name) is not None]
    if len(given) > 1:
        yield Problem(path, f"more than one handler: {' and '.join(given)}")
    elif not given and not may_lack_handler:
        options = ", ".join(HANDLERS)
        yield Problem(path, f"missing handler (expected one of {options})", ProblemKind.REQUIRED)
    for name in given:
        yield from _handler_problems(name, probe[name], f"{path}.{name}")
    for name in _NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield Problem(f"{path}.{name}", "must not be negative")
    if path.rpartition(".")[2] != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
        yield Problem(f"{path}.successThreshold", "must be 1 for a liveness or startup probe")


def _handler_problems(name: str, handler: Fields, path: str) -> Iterator[Problem]:
    if name == "exec":
        if not handler.get("command"):
            yield Problem(f"{path}.command", "missing command", ProblemKind.REQUIRED)
        return
    port = handler.get("port")
    if port is None or port == "":
        yield Problem(f"{path}.port", "missing port", ProblemKind.REQUIRED)
    elif isinstance(port, bool) or not isinstance(port, int | str):
        yield Problem(f"{path}.port", "expected a port number or name")
    elif isinstance(port, int) and not 0 < port <= _MAX_PORT:
        yield Problem(f"{path}.port", f"must be between 1 and {_MAX_PORT}")
    elif isinstance(port, str) and not is_port_name(port):
        yield Problem(f"{path}.port", f'invalid port name "{port}"')


def is_port_name(text: str) -> bool:
    """Whether the text may name a container's port: at most 15 of `a-z 0-9 -`, with a letter."""
    fits = len(text) <= 15 and text == text.lower() and text.isascii()  # noqa: PLR2004  # RFC 6335
    plain = text.replace("-", "a").isalnum() and "--" not in text and text.strip("-") == text
    return fits and plain and not text.isdigit()


def account_problems(
    spec: ComponentSpec, pod: Fields, namespace: str, path: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Report an invalid ServiceAccount, or one that the component's pods may not use.

    The author of a graph chooses the ServiceAccount of its pods. If it could be the operator's, permission to
    write graphs in the operator's namespace would include everything that the operator may do.
    """
    for field in ("serviceAccountName", "serviceAccount"):
        if not (name := pod.get(field)):
            continue
        yield from name_problems(name, f"{path}.{field}", "a ServiceAccount")
        if refusal := _account_refusal(name, spec, namespace, settings):
            yield Problem(f"{path}.{field}", f'"{name}" {refusal}', ProblemKind.FORBIDDEN)


def _account_refusal(
    name: str, spec: ComponentSpec, namespace: str, settings: RenderSettings
) -> str:
    if f"{namespace}/{name}" == settings.operator_account:
        return "is the operator's own ServiceAccount, which no pod may use"
    if name == PROFILING_SERVICE_ACCOUNT:
        return "is the ServiceAccount of profiling Jobs, which no graph may use"
    if name == PLANNER_SERVICE_ACCOUNT and spec.component_type != _PLANNER:
        return f"is the ServiceAccount of planners (expected componentType {_PLANNER})"
    return ""
