"""Which inference framework a component runs, how its command starts it, and on how many GPUs.

Detection matches exactly what a regular expression of the Go operator matches: any difference would
launch live graphs in another way. That expression takes cubic time in a text that users choose, so its
parts are searched one after the other.
"""

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

import msgspec

from dynamo_operator.component.api import (
    BACKEND_NAMES,
    FRAMEWORKS,
    NOOP,
    WORKER_TYPES,
    ComponentSpec,
    DynamoComponentDeploymentSpec,
    ResourceItem,
    Resources,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.meta import Fields, Object, amount

FRONTEND = ("-m", "dynamo.frontend")
"""Default arguments of a frontend's Python."""

_SHELL = re.compile(r"(.*/)?(sh|ash|bash|dash|ksh|zsh)")
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c")
_FLAG = re.compile(r"--[A-Za-z][\w.-]*(=.*)?", re.ASCII | re.DOTALL)
_FIRST_FLAG = re.compile(r"--?[A-Za-z][\w.-]*(=.*)?", re.ASCII | re.DOTALL)
_INTERPRETER = re.compile(r"(.*/)?python\d*(\.\d+)*", re.ASCII)
_PYTHON_FLAGS = ("--help", "--version", "--check-hash-based-pycs")
# Words, quotes and variables, but nothing that ends a command, redirects it or starts another one.
# Possessive, and each alternative begins with other characters, so that matching never backtracks.
_WORDS = re.compile(
    r"""(?:[^\s'"\\;&|<>()#`$]|[\t ]|(?<=\S)\#|\\.|'[^']*'|"(?:[^"\\]|\\.)*+"|\$(?:\([\w.-]+\))?)*+""",
    re.DOTALL,
)


def is_shell(command: Sequence[str]) -> bool:
    """Whether the command passes its first argument to a shell, as `sh -c` does."""
    return (
        len(command) > 1
        and _SHELL.fullmatch(command[0]) is not None
        and _SCRIPT_FLAG.fullmatch(command[-1]) is not None
    )


def is_flag(text: str) -> bool:
    """Whether the text begins with a long flag such as `--model`, which is never a shell script."""
    return _FLAG.match(text) is not None


def is_python(program: str) -> bool:
    """Whether a command's first word is a Python interpreter."""
    return _INTERPRETER.fullmatch(program) is not None


def has_only_flags(args: Sequence[str]) -> bool:
    """Whether the arguments begin with a long flag that belongs neither to a shell nor to Python."""
    return bool(args) and is_flag(args[0]) and args[0].partition("=")[0] not in _PYTHON_FLAGS


def several_flags(text: str) -> str:
    """Return the flags inside one argument, such as `--model x --tp 2`, as text for a script.

    "" if it is a single argument, or if a shell would read more than the words of one command.
    """
    words = text.split()
    if len(words) < 2 or not _FIRST_FLAG.fullmatch(words[0]):  # noqa: PLR2004  # a flag and more
        return ""
    script = text.strip()
    if words[-1] == "\\":
        script = script[:-1].rstrip()  # a line continuation
    is_several = any(map(is_flag, words[1:])) or (is_flag(words[0]) and "=" not in words[0])
    return script if is_several and _WORDS.fullmatch(script) else ""


def started(component_type: str | None, framework: str, main: Fields) -> Object:
    """Return the main container with the program that its flags are meant for.

    By default, `/bin/sh -c` receives a worker's arguments and `python3` a frontend's. Neither accepts
    flags such as `--model` or `--router-mode`, so such a container could never run; it gets the command
    it was written for.
    """
    container = dict(main)
    args = [str(arg) for arg in main.get("args") or ()]
    if main.get("command") or not args or not is_flag(args[0]):
        return container
    if component_type == "frontend" and args[0].partition("=")[0] not in _PYTHON_FLAGS:
        return container | {"args": [*FRONTEND, *args]}
    if component_type in WORKER_TYPES and framework != NOOP:
        return container | {"command": ["python3", "-m", f"dynamo.{framework}"], "args": args}
    return container


GPU = "nvidia.com/gpu"


# Users set GPUs in four places: in the short form or in the container's resources, as a limit or as
# a request.
def gpus(spec: ComponentSpec) -> int:
    """The GPUs of one pod; 0 if there are none or if resource claims provide them."""
    short = spec.resources or Resources()
    limits, requests = short.limits or ResourceItem(), short.requests or ResourceItem()
    name = limits.gpu_type or requests.gpu_type or GPU
    main = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    resources: Fields = main.get("resources") or {}
    values = [limits.custom.get(name), requests.custom.get(name), limits.gpu, requests.gpu]
    values += [(resources.get(side) or {}).get(name) for side in ("limits", "requests")]
    for value in values:  # in the order of precedence
        number = amount(value) if isinstance(value, str | int) else None
        if number is not None and number > 0:
            return int(number)
    return 0


_TENSOR = ("--tensor-parallel-size", "-tp")
_PIPELINE = ("--pipeline-parallel-size", "-pp")
_DATA = ("--data-parallel-size", "-dp")
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


class Mode(Enum):
    """How the nodes of one replica share the work."""

    ALONE = "each node for itself"
    RAY = "one model over all nodes"
    DATA_PARALLEL = "copies of a model over all nodes"


class Parallelism(msgspec.Struct, frozen=True):
    """The GPUs that share one copy of the model (`cut`), and the number of copies."""

    cut: int = 1
    copies: int = 1


def mode(gpus: int, sizes: Parallelism) -> Mode:
    """Return how nodes with that many GPUs each share the work."""
    if gpus and sizes.cut > gpus:
        return Mode.RAY
    is_spread = gpus and sizes.cut * sizes.copies > gpus
    return Mode.DATA_PARALLEL if is_spread else Mode.ALONE


def parallelism(container: Fields) -> Parallelism:
    """Parse the parallelism flags in a container's command and arguments."""
    texts = (*(container.get("command") or ()), *(container.get("args") or ()))
    words = [word.strip("'\"") for text in texts for word in text.split()]
    flags = [pair for pair in pairwise([*words, ""]) if pair[0].startswith(("-", "_"))]
    return Parallelism(_size(flags, _TENSOR) * _size(flags, _PIPELINE), _size(flags, _DATA))


def _size(flags: Sequence[tuple[str, str]], names: Sequence[str]) -> int:
    # As `--flag 2` or `--flag=2`; without it 1.
    for word, following in flags:
        flag, has_value, value = word.partition("=")
        number = value if has_value else following
        if flag.replace("_", "-") in names and _NUMBER.fullmatch(number):
            return int(number)
    return 1


LORA_VARIABLE = "DYN_LORA_ENABLED"  # with `true` a worker loads LoRAs by their URIs
LORA_FLAG = "--enable-lora"  # without it vLLM serves no API for LoRAs
# A newline does not end a command; space is ASCII without vertical tab.
_SPACE = r"[\t\n\f\r ]"
_SEPARATOR = re.compile(r"[|&;]")
_PYTHON = re.compile(rf"python[0-9.]*{_SPACE}")
_MODULE = re.compile(rf"-m{_SPACE}")
_CACHE_PATHS = {backend.name: backend.cache_path for backend in BACKEND_NAMES}
_WITH_SSH_KEYS = frozenset(backend.name for backend in BACKEND_NAMES if backend.needs_ssh_keys)


class Framework(msgspec.Struct, frozen=True):
    """The framework of a component. If it is unknown, `problem` is the reason and `name` is `noop`."""

    name: str = NOOP
    problem: str = ""


def framework(spec: DynamoComponentDeploymentSpec) -> Framework:
    """Return the framework that a component runs; `noop` for all but workers."""
    if spec.component_type not in WORKER_TYPES:
        return Framework()
    explicit = spec.backend_framework or ""
    if explicit and explicit not in FRAMEWORKS:
        return Framework(problem=f'unknown backend framework "{explicit}" (expected {", ".join(FRAMEWORKS)})')
    container = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    parts = (*(container.get("command") or ()), *(container.get("args") or ()))
    command = " ".join(map(str, parts))
    modules = []  # what follows `-m` of a Python
    for part in _SEPARATOR.split(command):
        python = _PYTHON.search(part)
        if option := _MODULE.search(part, python.end()) if python else None:
            modules.append(part[option.end() :])
    detected = [name for name in sorted(FRAMEWORKS) if any(f"dynamo.{name}" in module for module in modules)]
    if len(detected) > 1:
        if explicit:
            return Framework(explicit)
        names = " ".join(detected)
        return Framework(
            problem="could not determine backend framework: multiple backend frameworks detected "
            f'from command: [{names}] in "{command}"'
        )
    if detected and explicit and detected[0] != explicit:
        return Framework(
            problem=f'backend framework mismatch: detected "{detected[0]}" from command '
            f'but explicitly configured as "{explicit}"'
        )
    return Framework(detected[0] if detected else explicit or NOOP)


def declared_or_detected(spec: DynamoComponentDeploymentSpec) -> str | None:
    """The component's framework for display; None without one, or if it is unknown."""
    name = framework(spec).name
    return spec.backend_framework or (None if name == NOOP else name)


def frameworks(graph: DynamoGraphDeployment) -> str | None:
    """The graph's frameworks for display, separated by commas; None without any."""
    if graph.spec.backend_framework:
        return graph.spec.backend_framework
    services = graph.spec.services.values()
    names = {framework(as_component(graph, service)).name for service in services} - {NOOP}
    return ",".join(sorted(names)) or None


def cache_path(name: str, mount_point: str | None, *, is_cache: bool) -> str:
    """Mount path of a volume; "" means that the user must set it."""
    return mount_point or (_CACHE_PATHS.get(name, "") if is_cache else "")


def as_component(graph: DynamoGraphDeployment, service: ComponentSpec) -> DynamoComponentDeploymentSpec:
    """Convert a graph's service to the spec of its component, with the graph's framework."""
    fields = {name: getattr(service, name) for name in service.__struct_fields__}
    return DynamoComponentDeploymentSpec(**fields, backend_framework=graph.spec.backend_framework)


def needs_ssh_keys(graph: DynamoGraphDeployment) -> bool:
    """Whether a multinode service of the graph starts processes in its pods over SSH."""
    multinode = (service for service in graph.spec.services.values() if service.nodes > 1)
    return any(framework(as_component(graph, service)).name in _WITH_SSH_KEYS for service in multinode)
