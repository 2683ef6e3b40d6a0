"""The configuration that the operator hands to the profiler, read and validated.

Keys of Dynamo's profiler that only steer measurements are ignored. Our own keys are in the section
`analytic`. All mistakes are reported at once, because each attempt costs a Job.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dynamo_profiler import REFUSAL_CHARACTERS, Refusal
from dynamo_profiler.base import BACKENDS
from dynamo_profiler.kernels import ENGINES, EngineName
from dynamo_profiler.shape import DEFAULT, GPUS, Gpu, gpu_named
from kube_runtime.types.meta import Fields, fitted

D = TypeVar("D")
T = TypeVar("T")
_HUMP = re.compile(r"(?<!^)([A-Z])")


# Keys may be in camelCase or in snake_case; camelCase wins, as in Dynamo's profiler. An invalid
# value is recorded and read as its default, so that all mistakes are reported at once.
@dataclass(frozen=True, slots=True)
class Section:
    """One mapping with its path, and the mistakes in it and in its sections."""

    fields: Fields
    path: str = ""
    mistakes: list[str] = field(default_factory=list)

    def section(self, name: str) -> "Section":
        """The section with this name; empty if absent."""
        value = self._value(name)
        if value is not None and not isinstance(value, Mapping):
            self._refuse(name, "must be a mapping")
            return Section({}, self._path(name))  # its missing entries are not reported again
        return Section(value or {}, self._path(name), self.mistakes)

    def has(self, name: str) -> bool:
        """Whether the key is set, if only to an empty mapping."""
        return self._value(name) is not None

    def number(self, name: str, default: D, *, most: float, over: float = 0) -> float | D:
        """A number greater than `over` and not above `most`."""
        return self._read(
            *(name, default, float),
            (_is_number, "must be a number"),
            (lambda value: over < value <= most, f"must be above {over:g} and at most {most:g}"),
        )

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number within these bounds."""
        return self._read(
            *(name, default, int),
            (lambda value: _is_number(value) and value == value // 1, "must be a whole number"),
            (lambda value: least <= value <= most, f"must be from {least} to {most}"),
        )

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        return self._read(name, default, str, (lambda value: isinstance(value, str), "must be a string"))

    def word(self, name: str, fits: Callable[[str], bool], rule: str, default: str | None = None) -> str:
        """A string for which `fits` is true, required unless it has a default. `rule` describes what fits."""
        if default is None and self._value(name) is None:
            self._refuse(name, rule)
        return self._read(
            name, default or "", str, (lambda value: isinstance(value, str) and fits(value), rule)
        )

    def flag(self, name: str) -> bool:
        """A boolean, false by default."""
        rule = "must be true or false"
        return self._read(name, None, bool, (lambda value: isinstance(value, bool), rule)) or False

    def _read(
        self, name: str, default: D, form: Callable[[Any], T], *checks: tuple[Callable[[Any], bool], str]
    ) -> T | D:
        """The value in this form; the default if it is not set or does not pass a check."""
        value = self._value(name)
        if value is None:
            return default
        for fits, rule in checks:
            if not fits(value):
                self._refuse(name, rule)
                return default
        return form(value)

    def _value(self, name: str) -> Any:
        value = self.fields.get(name)
        return self.fields.get(_HUMP.sub(r"_\1", name).lower()) if value is None else value

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refuse(self, name: str, rule: str) -> None:
        value = self._value(name)
        self.mistakes.append(f"{self._path(name)} {rule}, and is {('' if value is None else value)!r:.80}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


MODEL_CACHE = "/opt/model-cache"
OUTPUT_FOLDER = "/data"
FRONTEND_URL = "http://{frontend}.{namespace}.svc:8000"
"""The URL of a graph's frontend: its Service, on the default port."""
_MAX_TOKENS = 10_000_000
_MAX_MILLISECONDS = 3_600_000
_MAX_GPUS = 1024
_MAX_NODES = 64
_MAX_MODEL_LENGTH = 500


class Mode(Enum):
    """Whether the same workers do prefill and decode, or separate ones."""

    AGGREGATED = "aggregated"
    DISAGGREGATED = "disaggregated"


@dataclass(frozen=True, slots=True)
class Targets:
    """Lengths of input and output, and limits of the time to first token and between tokens.

    Units: tokens, seconds.
    """

    isl: int = 3000
    osl: int = 500
    ttft: float = 0.05
    itl: float = 0.01

    @property
    def context(self) -> float:
        """The mean context length during decode."""
        return self.isl + self.osl / 2


@dataclass(frozen=True, slots=True)
class Hardware:
    """The GPUs of one engine, on at most `nodes` nodes. `is_assumed` if their type is not configured."""

    gpu: Gpu
    per_node: int = 8
    min_gpus: int = 1
    max_gpus: int = 8
    is_assumed: bool = False
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Online:
    """How candidates are measured; if `is_mocked`, with simulated engines that need no GPU.

    `url` is that of a frontend, with `{frontend}` for its Service and `{namespace}`. Units: seconds.
    """

    namespace: str
    url: str = FRONTEND_URL
    candidates: int = 3
    seconds_per_load: float = 60
    deployment_seconds: float = 1800
    is_mocked: bool = False

    def address(self, frontend: str) -> str:
        """The URL of the frontend with this Service."""
        return self.url.replace("{frontend}", frontend).replace("{namespace}", self.namespace)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The whole configuration of the profiler.

    `mode` is None if the profiler may choose, `planner` if the graph gets none, `billions` (of parameters) if
    the model's name or `config.json` gives it, `online` if nothing is measured. `budget` 0 is any number of
    GPUs. `margin` None is the median error of the engine.
    """

    model: str
    backend: str
    targets: Targets
    hardware: Hardware
    image: str = ""
    base_file: str = ""
    model_folder: str = ""
    output_folder: str = OUTPUT_FOLDER
    discovers: bool = False
    longest_context: int = 0
    prefill_points: int = 16
    decode_points: int = 6
    planner: Fields | None = None
    mode: Mode | None = None
    billions: float | None = None
    requests_per_second: float = 1
    budget: int = 0
    seconds_per_phase: float = 0
    engine: EngineName = "auto"
    margin: float | None = None
    online: Online | None = None


def read_configuration(document: object, *, discovers: bool = False) -> Configuration:
    """The configuration in a parsed YAML or JSON document.

    Raises:
        Refusal: values are invalid; it names each.
    """
    if not isinstance(document, Mapping):
        raise Refusal("the configuration must be a mapping")
    whole = Section(document)
    engine, deployment, sweep = (whole.section(x) for x in ("engine", "deployment", "sweep"))
    analytic = whole.section("analytic")
    configuration = Configuration(
        model=deployment.word("model", _is_model, "must be the name of a model"),
        backend=engine.word("backend", BACKENDS.__contains__, f"must be one of {', '.join(BACKENDS)}"),
        targets=targets_of(whole.section("sla")),
        hardware=_hardware(whole.section("hardware"), sweep, analytic),
        image=deployment.text("dgdImage"),
        base_file=engine.text("config"),
        model_folder=_model_folder(deployment.section("modelCache")),
        output_folder=whole.text("outputDir", OUTPUT_FOLDER),
        discovers=discovers or whole.section("hardware").flag("enableGpuDiscovery"),
        longest_context=engine.whole("maxContextLength", 0, least=0, most=2 * _MAX_TOKENS),
        prefill_points=sweep.whole("prefillInterpolationGranularity", 16, least=2, most=32),
        decode_points=sweep.whole("decodeInterpolationGranularity", 6, least=2, most=32),
        planner=whole.section("planner").fields if whole.has("planner") else None,
        mode=_mode(analytic),
        billions=analytic.number("parametersBillions", None, most=1e5),
        requests_per_second=analytic.number("requestsPerSecond", 1, most=1e6),
        budget=analytic.whole("maxGpus", 0, least=0, most=10**6),
        seconds_per_phase=analytic.number("secondsPerPhase", 0, over=-1, most=600),
        engine=_engine(analytic),
        margin=analytic.number("margin", None, over=-1, most=10),
        online=_online(whole, sweep, deployment),
    )
    if whole.mistakes:
        raise Refusal(fitted(whole.mistakes, REFUSAL_CHARACTERS))
    return configuration


def _online(whole: Section, sweep: Section, deployment: Section) -> Online | None:
    """How to measure, or None without a section `online` and without `useAiConfigurator: false`."""
    is_offline = sweep.flag("useAiConfigurator")
    namespace = deployment.text("namespace", "default")
    timeout = deployment.number("deploymentTimeout", 1800, most=86_400)
    if not whole.has("online") and (is_offline or not sweep.has("useAiConfigurator")):
        return None
    if is_offline:
        whole.mistakes.append("sweep.useAiConfigurator: must not be true beside the section online")
    section = whole.section("online")
    online = Online(
        namespace=namespace,
        url=section.text("frontendUrl", FRONTEND_URL),
        candidates=section.whole("candidates", 3, least=1, most=8),
        seconds_per_load=section.number("secondsPerLoad", 60, most=3600),
        deployment_seconds=timeout,
        is_mocked=section.flag("useMocker"),
    )
    if not _is_url(online.address("frontend")):
        rule = "must be a URL, with {frontend} and {namespace} for what differs, for example"
        whole.mistakes.append(f"online.frontendUrl {rule} {FRONTEND_URL}, and is {online.url!r:.80}")
    return online


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def with_hardware(configuration: Configuration, gpu: Gpu, per_node: int) -> Configuration:
    """The configuration with the GPUs of the nodes in place of the configured ones."""
    most = min(configuration.hardware.max_gpus, per_node)
    fewest = min(configuration.hardware.min_gpus, most)
    nodes = configuration.hardware.nodes
    return replace(configuration, hardware=Hardware(gpu, per_node, fewest, most, nodes=nodes))


def _is_model(name: str) -> bool:
    return bool(name.strip()) and len(name) <= _MAX_MODEL_LENGTH and name.isprintable()


def targets_of(sla: Section) -> Targets:
    """The targets in the section `sla`, with the defaults of Dynamo's profiler."""
    return Targets(
        isl=sla.whole("isl", 3000, least=1, most=_MAX_TOKENS),
        osl=sla.whole("osl", 500, least=2, most=_MAX_TOKENS),
        ttft=sla.number("ttft", 50, most=_MAX_MILLISECONDS) / 1000,
        itl=sla.number("itl", 10, most=_MAX_MILLISECONDS) / 1000,
    )


def _hardware(hardware: Section, sweep: Section, analytic: Section) -> Hardware:
    mistakes_before = len(hardware.mistakes)
    per_node = hardware.whole("numGpusPerNode", 0, least=0, most=_MAX_GPUS) or 8
    max_gpus = hardware.whole("maxNumGpusPerEngine", 0, least=0, most=_MAX_GPUS) or per_node
    min_gpus = hardware.whole("minNumGpusPerEngine", 0, least=0, most=_MAX_GPUS) or 1
    if min_gpus > min(max_gpus, per_node) and mistakes_before == len(hardware.mistakes):
        hardware.mistakes.append(
            f"hardware.minNumGpusPerEngine is {min_gpus}, but an engine may have at most "
            f"{min(max_gpus, per_node)}; an engine stays on one node"
        )
    gpu_type, fallback = hardware.text("gpuType"), sweep.text("aicSystem")
    name = gpu_type or fallback
    try:
        gpu = gpu_named(name or DEFAULT)
    except Refusal as error:
        hardware.mistakes.append(f"{'hardware.gpuType' if gpu_type else 'sweep.aicSystem'}: {error}")
        gpu = GPUS[DEFAULT]
    nodes = analytic.whole("maxNodesPerEngine", 1, least=1, most=_MAX_NODES)
    return Hardware(gpu, per_node, min_gpus, min(max_gpus, per_node), not name, nodes)


def _model_folder(cache: Section) -> str:
    if not cache.text("pvcName"):
        return ""
    mount, inner = cache.text("mountPath") or MODEL_CACHE, cache.text("pvcPath").strip("/")
    return f"{mount.rstrip('/')}/{inner}".rstrip("/")


def _mode(analytic: Section) -> Mode | None:
    modes = {mode.value: mode for mode in Mode}
    rule = f"must be {' or '.join(modes)}"
    return modes.get(analytic.word("mode", {"", *modes}.__contains__, rule, ""))


def _engine(analytic: Section) -> EngineName:
    names: dict[str, EngineName] = {name: name for name in ENGINES}
    rule = f"must be one of {', '.join(names)}"
    return names.get(analytic.word("engine", names.__contains__, rule, "auto"), "auto")
