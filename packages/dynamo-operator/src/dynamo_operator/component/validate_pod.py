"""The rules of what users write about pods: JSON types, images, variables, volumes."""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dynamo_operator import labels
from dynamo_operator.component.api import (
    NOOP,
    WORKER_TYPES,
    ComponentSpec,
    DynamoComponentDeploymentSpec,
    VolumeMount,
)
from dynamo_operator.component.framework import cache_path
from dynamo_operator.component.objects import HANDLERS
from dynamo_operator.component.service import VARIABLE, folded
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
    dotted,
    is_dns_label,
    name_problems,
    quantity_problems,
    shown,
)
from kube_runtime.types.meta import Fields, amount

_SHARED_MEMORY = "shared-memory"
_SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  # the mount path that POSIX shared memory uses


def volume_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str, framework: str
) -> Iterator[Problem]:
    """Problems of the volumes of a component, and of the mounts of all its containers."""
    memory = spec.shared_memory
    if memory is not None and not memory.disabled:
        at = f"{path}.sharedMemory.size"
        if memory.size is None or amount(memory.size) == 0:
            message = f"{component_path(path)}.sharedMemory.size is required when disabled is false"
            yield Problem(at, message, ProblemKind.REQUIRED)
        else:
            yield from quantity_problems(memory.size, at)
    claims: dict[str, str] = {}
    for index, mount in enumerate(spec.volume_mounts):
        yield from _mount_problems(mount, (path, index), framework, claims)
    main_paths = set[str]()
    for index, mount in enumerate((pod.get("mainContainer") or {}).get("volumeMounts") or ()):
        at = f"{path}.extraPodSpec.mainContainer.volumeMounts[{index}].mountPath"
        mount_path, name = mount.get("mountPath") or "", mount.get("name")
        if mount_path in claims and name != volume_name(claims[mount_path]):
            yield _path_taken(at, mount_path, claims[mount_path])
        main_paths.add(mount_path)
    own = {volume_name(mount.name): mount.name for mount in spec.volume_mounts if mount.name}
    has_memory = _SHARED_MEMORY_PATH not in claims.keys() | main_paths
    has_memory = has_memory and not (memory and memory.disabled)
    volumes = pod.get("volumes") or ()
    at = f"{path}.extraPodSpec"
    if volumes:
        yield from _pod_volume_problems(volumes, f"{at}.volumes", own, has_memory=has_memory)
    names = {volume.get("name") or "" for volume in volumes} | own.keys()
    names |= {_SHARED_MEMORY} if has_memory else set()
    for container_path, container in containers_of(pod, at):
        if container.get("volumeMounts"):
            mounts = container["volumeMounts"]
            yield from _container_mount_problems(mounts, f"{container_path}.volumeMounts", names)


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
    if not mount_path and is_cache:
        named = "a component without a known backend" if framework == NOOP else framework
        message = f"missing mount point, because {named} has no default"
        yield Problem(at, message, ProblemKind.REQUIRED)
    elif not mount_path:
        message = "mountPoint is required when useAsCompilationCache is false"
        message = f"{component_path(component)}.volumeMounts[{index}].{message}"
        yield Problem(at, message, ProblemKind.REQUIRED)
    elif not mount_path.startswith("/") or ":" in mount_path:
        message = f'invalid mount point "{mount_path}" (expected an absolute path without ":")'
        yield Problem(at, message)
    elif claims.setdefault(mount_path, mount.name) != mount.name:
        yield _path_taken(at, mount_path, claims[mount_path])


def _path_taken(path: str, mount_path: str, claim: str) -> Problem:
    # Many mounts may collide with one PVC, whose invalid name may be long: cut it.
    message = f'duplicate path "{mount_path}", already the mount point of PVC "{claim[:SUBDOMAIN_LIMIT]}"'
    return Problem(path, message, ProblemKind.DUPLICATE)


def _pod_volume_problems(
    volumes: Sequence[Any], path: str, own: Mapping[str, str], *, has_memory: bool
) -> Iterator[Problem]:
    """Problems of the pod's own volumes. `own` are the PVCs of the volumes that the operator adds."""
    names = set[str]()
    for index, volume in enumerate(volumes):
        at, name = f"{path}[{index}].name", volume.get("name") or ""
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not is_dns_label(name):
            yield Problem(at, f'invalid volume name "{name}"')
        message = f'duplicate volume "{name}"'
        if name in names:
            yield Problem(at, message, ProblemKind.DUPLICATE)
        elif name in own and claim != own[name]:
            message = f"{message}, already the volume of a PVC in volumeMounts"
            yield Problem(at, message, ProblemKind.DUPLICATE)
        elif name == _SHARED_MEMORY and has_memory:
            message = (
                f"{message}, already the one at {_SHARED_MEMORY_PATH}: rename yours or disable shared memory"
            )
            yield Problem(at, message, ProblemKind.DUPLICATE)
        names.add(name)


def _container_mount_problems(mounts: Sequence[Any], path: str, volumes: Container[str]) -> Iterator[Problem]:
    seen = set[str]()
    for index, mount in enumerate(mounts):
        at, name = f"{path}[{index}]", mount.get("name")
        mount_path = mount.get("mountPath")
        if not mount_path:
            yield Problem(f"{at}.mountPath", "missing path", ProblemKind.REQUIRED)
        elif mount_path in seen:
            message = f'duplicate path "{mount_path}"'
            yield Problem(f"{at}.mountPath", message, ProblemKind.DUPLICATE)
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

_NUMBERS = (
    *("initialDelaySeconds", "periodSeconds", "timeoutSeconds"),
    *("successThreshold", "failureThreshold"),
)
"""Fields of a probe that must not be negative."""

ENVIRONMENT: Shape = [{"name": str, "value": str, "valueFrom": ENTRIES}]
PROBE: Mapping[str, Shape] = {
    "exec": {"command": [str]},
    "httpGet": {"path": str, "host": str, "scheme": str},
    "tcpSocket": {"host": str},
    "grpc": {"port": int, "service": str},
    **dict.fromkeys(_NUMBERS, int),
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


# What users write about pods stays plain JSON, so that unknown fields survive. The API server checks
# it against the full schema. Documents that do not come from there get at least this check of the
# fields that rendering reads.
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
            message = f'image "{image}" has no tag, so latest is used: pods may run different versions'
            yield Problem(f"{at}.image", message)
        elif tag == "latest":
            message = f'image "{image}" may change at any time: pods may run different versions'
            yield Problem(f"{at}.image", message)


# The number of a release as in the tag of an image. Source: the Go operator of Dynamo 1.x.
_NUMBER = r"(0|[1-9]\d*)"
_RELEASE = re.compile(rf"[vV]?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII)


def has_version(image: str) -> bool:
    """Whether the tag of the image is a version."""
    _, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return _RELEASE.fullmatch(tag) is not None


def version_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of a main image whose version no tag says: Go operators of Dynamo 1.x refuse to create it."""
    image = ((spec.extra_pod_spec or {}).get("mainContainer") or {}).get("image")
    if not isinstance(image, str) or not image or spec.runtime_version_override:
        return
    if not has_version(image):
        message = (
            f"the tag of image {shown(image)} is not a version: operators of Dynamo 1.x do not create the "
            'graph without runtimeVersionOverride, for example "1.2.0"'
        )
        yield Problem(f"{path}.extraPodSpec.mainContainer.image", message)


def shared_environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables whose JSON types are not checked yet."""
    wrong_types = tuple(shape_problems(entries, ENVIRONMENT, path))
    yield from wrong_types or environment_problems(entries, path)


def environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables that have the right JSON types.

    A repeated name is valid here: in `envs` the later entry wins.
    """
    yield from _variable_problems(entries, path)
    for index, entry in enumerate(entries):
        if entry.get("name") == VARIABLE:
            yield from _config_problems(entry.get("value") or "", f"{path}[{index}].value")


def _variable_problems(entries: Sequence[Any], path: str, *, is_unique: bool = False) -> Iterator[Problem]:
    """Problems of each variable, as the API server reports them."""
    seen = set[str]()
    for index, entry in enumerate(entries):
        at = f"{path}[{index}]"
        name, source = entry.get("name"), entry.get("valueFrom")
        if not name:
            message = "missing name of an environment variable"
            yield Problem(f"{at}.name", message, ProblemKind.REQUIRED)
        elif "=" in name or not name.isascii() or not name.isprintable():
            message = f'invalid variable name "{name}" (expected ASCII without "=")'
            yield Problem(f"{at}.name", message)
        if source is not None and entry.get("value"):
            yield Problem(f"{at}.valueFrom", "value and valueFrom must not both be set")
        if source is not None and sum(reference is not None for reference in source.values()) != 1:
            yield Problem(f"{at}.valueFrom", "expected exactly one source")
        if is_unique and name and name in seen:
            yield Problem(f"{at}.name", f'duplicate variable "{name}"', ProblemKind.DUPLICATE)
        seen.add(name or "")


# The operator reads replicas and resources of services from the JSON of `DYN_DEPLOYMENT_CONFIG`; the
# rest of it belongs to the process.
def _config_problems(text: str, path: str) -> Iterator[Problem]:
    """Problems of the JSON in a `DYN_DEPLOYMENT_CONFIG`."""
    try:
        config = json.loads(text)
    except ValueError as error:
        yield Problem(path, f"invalid JSON: {error}")
        return
    except RecursionError:
        yield Problem(path, "invalid JSON: it is nested too deeply")
        return
    if not isinstance(config, dict):
        yield Problem(path, "expected a JSON object with one entry per service")
        return
    for service, sizes in config.items():
        if isinstance(sizes, dict):
            yield from _service_problems(folded(sizes).get("serviceargs"), f"{path}[{service}]")


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
    sizes = folded(resources)
    custom = sizes.get("custom")
    if isinstance(custom, dict):
        amounts = {f"custom[{name}]": value for name, value in custom.items()}
    else:
        amounts = {} if custom is None else {"custom": custom}
    for name in ("cpu", "memory", "gpu"):
        if sizes.get(name) not in (None, ""):
            amounts[name] = sizes[name]
    for name, value in amounts.items():
        if isinstance(value, str):
            yield from quantity_problems(value, f"{at}.resources.{name}")
        else:
            message = "expected a string, for example a quoted number"
            yield Problem(f"{at}.resources.{name}", message)


_PROBED_TYPES = WORKER_TYPES | {"frontend"}
"""Component types with default liveness and readiness probes, over which the user's are merged."""
_PROBES = {"livenessProbe": _PROBED_TYPES, "readinessProbe": _PROBED_TYPES, "startupProbe": WORKER_TYPES}
"""The component types for which the main container's probe is merged over a default."""
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
    if not main:
        yield _missing_image(f"{path}.mainContainer", " (there is no default)")
    taken = {main.get("name") or "main": "the main container"}
    if "true" in map(spec.annotations.get, (labels.DEBUG_MODE, labels.STEALING_DEBUG_MODE)):
        taken[_DEBUGGER] = "the debugger"
    for at, container in containers_of(pod, path):
        yield from _container_problems(spec, container, at, taken)
    if pod.get("restartPolicy") not in (None, "", "Always"):
        message = "components run until they are deleted (expected Always)"
        yield Problem(f"{path}.restartPolicy", message, ProblemKind.NOT_SUPPORTED)
    if (pod.get("terminationGracePeriodSeconds") or 0) < 0:
        yield Problem(f"{path}.terminationGracePeriodSeconds", "must not be negative")
    for field in _NOT_IN_DEPLOYMENTS:
        if pod.get(field):
            yield Problem(f"{path}.{field}", "not supported by Deployments", ProblemKind.FORBIDDEN)
    for keys in _empty_lists(pod, ()):
        if keys[-1] in REQUIRED_LISTS:
            at = dotted((path, *keys))
            yield Problem(at, "expected at least one entry", ProblemKind.REQUIRED)
    for field in ("imagePullSecrets", "resourceClaims"):
        names = set[str]()
        for index, entry in enumerate(pod.get(field) or ()):
            at, name = f"{path}.{field}[{index}].name", entry.get("name") or ""
            if not name:
                yield Problem(at, "missing name", ProblemKind.REQUIRED)
            elif name in names:
                yield Problem(at, f'duplicate name "{name}"', ProblemKind.DUPLICATE)
            names.add(name)


def _container_problems(
    spec: ComponentSpec, container: Fields, path: str, taken: dict[str, str]
) -> Iterator[Problem]:
    """Problems of one container. Adds its name to `taken`."""
    is_main, name = path.endswith(".mainContainer"), container.get("name") or ""
    if not is_main and name in taken:
        message = f'duplicate container name "{name}", already used by {taken[name]}'
        yield Problem(f"{path}.name", message, ProblemKind.DUPLICATE)
    elif not (is_main and not name) and not is_dns_label(name):
        yield Problem(f"{path}.name", f'invalid container name "{name}"')
    if not is_main:
        taken[name] = "another container"
    if not (container.get("image") or "").strip():
        yield _missing_image(path, " (there is no default)" if is_main else "")
    if container.get("ports"):
        yield from _port_problems(container["ports"], path)
    if container.get("env"):
        yield from _variable_problems(container["env"], f"{path}.env", is_unique=True)
    for probe, merged in _PROBES.items():
        given = container.get(probe)
        is_merged = is_main and spec.component_type in merged
        # An empty startup probe of the main container counts as unset.
        if given is not None and (given or not is_main or probe != "startupProbe"):
            yield from probe_problems(given, f"{path}.{probe}", may_lack_handler=is_merged)


def _missing_image(container: str, hint: str) -> Problem:
    return Problem(f"{container}.image", f"missing image{hint}", ProblemKind.REQUIRED)


def _port_problems(ports: Sequence[Any], path: str) -> Iterator[Problem]:
    seen = set[tuple[object, str]]()
    names = set[str]()
    for index, port in enumerate(ports):
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


REQUIRED_LISTS = ("monitors", "nodeSelectorTerms")
"""The lists that the schema of a pod requires. Rendering drops empty ones, so the API server would complain
about a missing field that the user wrote."""


def _empty_lists(value: object, keys: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The keys that lead to each empty list in a value at `keys`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _empty_lists(inner, (*keys, key))
    elif isinstance(value, list | tuple):
        if not value:
            yield keys
        for index, item in enumerate(value):
            yield from _empty_lists(item, (*keys, index))


def probe_problems(probe: Fields, path: str, *, may_lack_handler: bool = False) -> Iterator[Problem]:
    """Problems of a probe. `may_lack_handler` is for one that is merged over a default."""
    given = [name for name in HANDLERS if probe.get(name) is not None]
    if len(given) > 1:
        yield Problem(path, f"more than one handler: {' and '.join(given)}")
    elif not given and not may_lack_handler:
        options = ", ".join(HANDLERS)
        yield Problem(path, f"missing handler (expected one of {options})", ProblemKind.REQUIRED)
    for name in given:
        handler, at = probe[name], f"{path}.{name}"
        if name != "exec":
            yield from _port_problem(handler.get("port"), f"{at}.port")
        elif not handler.get("command"):
            yield Problem(f"{at}.command", "missing command", ProblemKind.REQUIRED)
    for name in _NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield Problem(f"{path}.{name}", "must not be negative")
    if path.rpartition(".")[2] != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
        yield Problem(f"{path}.successThreshold", "must be 1 for a liveness or startup probe")


def _port_problem(port: object, path: str) -> Iterator[Problem]:
    if port is None or port == "":
        yield Problem(path, "missing port", ProblemKind.REQUIRED)
    elif isinstance(port, bool) or not isinstance(port, int | str):
        yield Problem(path, "expected a port number or name")
    elif isinstance(port, int) and not 0 < port <= _MAX_PORT:
        yield Problem(path, f"must be between 1 and {_MAX_PORT}")
    elif isinstance(port, str) and not is_port_name(port):
        yield Problem(path, f'invalid port name "{port}"')


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
        if f"{namespace}/{name}" == settings.operator_account:
            refusal = "is the operator's own ServiceAccount, which no pod may use"
        elif name == PROFILING_SERVICE_ACCOUNT:
            refusal = "is the ServiceAccount of profiling Jobs, which no graph may use"
        elif name == PLANNER_SERVICE_ACCOUNT and spec.component_type != _PLANNER:
            refusal = f"is the ServiceAccount of planners (expected componentType {_PLANNER})"
        else:
            continue
        yield Problem(f"{path}.{field}", f'"{name}" {refusal}', ProblemKind.FORBIDDEN)
