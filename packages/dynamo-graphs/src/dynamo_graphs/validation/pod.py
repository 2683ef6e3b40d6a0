"""The rules of the user's pod spec and probes.

Not all rules of a pod: only those that depend on what the operator adds, and those that would otherwise fail
two objects further down, such as names of containers, ports, probes, images, and what Deployments do not
support.
"""

from collections.abc import Iterator, Mapping

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import WORKER_TYPES, ComponentSpec, DynamoComponentDeploymentSpec
from dynamo_graphs.api.names import PLANNER_SERVICE_ACCOUNT, PROFILING_SERVICE_ACCOUNT
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.environment import unique_environment_problems
from dynamo_graphs.validation.syntax import is_dns_label, name_problems
from dynamo_graphs.validation.volumes import containers_of
from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Fields, Object

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
