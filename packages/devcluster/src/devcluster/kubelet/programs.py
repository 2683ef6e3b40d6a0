"""Which local program stands for a container: those of Dynamo are known by their command, whatever the image.

The frontend is the real one. Engines need GPUs, so `dynamo.mocker` stands for them, the simulated engine of
the Dynamo runtime. Without the runtime, a small simulation with the same interfaces stands for both. Pure.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_runtime.types.meta import Object

FRONTEND = "dynamo.frontend"
MOCKER = "dynamo.mocker"
_ENGINES = ("dynamo.vllm", "dynamo.sglang", "dynamo.trtllm", MOCKER)
_SHELLS = ("sh", "bash")
_MODEL_NAMES = ("--served-model-name", "--model-name", "--model", "--model-path")
_DEFAULT_MODEL = "Qwen/Qwen3-0.6B"
"""As of `dynamo.vllm`."""
_CONTEXT_TOKENS = "32768"
_KEPT = (
    *("--speedup-ratio", "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens"),
    *("--num-gpu-blocks-override", "--data-parallel-size", "--startup-time"),
)
"""Flags that the mocker has with the same meaning."""
_RANDOM = "random words, no model"
LORA_WORKER = Path(__file__).with_name("lora_worker.py")
_LORA_SWITCH = {"name": "DYN_LORA_ENABLED", "value": "true"}
_MODES = ("prefill", "decode")
_SUB_COMPONENT = "nvidia.com/dynamo-sub-component-type"


@dataclass(frozen=True, slots=True)
class Runtime:
    """An installed Dynamo runtime, and the folder of the model that it simulates."""

    python: Path
    version: str
    model: Path
    events: str
    """The URL of the broker of events, which keeps the runtime from listening on all addresses."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command that stands for a container, and what its log begins with."""

    command: tuple[str, ...]
    note: str


def invocation(container: Object) -> tuple[str, list[str]] | None:
    """The module of Dynamo that a container runs, and its arguments; None for any other program."""
    words = [*container.get("command", ()), *container.get("args", ())]
    if len(words) > 2 and Path(words[0]).name in _SHELLS and words[1].endswith("c"):  # noqa: PLR2004
        try:
            words = list(shlex.split(words[2].replace("\\\n", " "), comments=True))
        except ValueError:
            return None
    for index, word in enumerate(words[:-1]):
        if word == "-m" and words[index + 1] in (FRONTEND, *_ENGINES):
            return words[index + 1], _until_an_operator(words[index + 2 :])
    return None


def program_of(
    container: Object, labels: Mapping[str, str], runtime: Runtime | None, simulation: Sequence[str]
) -> Program | None:
    """What stands for a container; None if it is no program of Dynamo that a machine without GPUs runs."""
    called = invocation(container)
    if called is None:
        return None
    module, arguments = called
    flags = _flags(arguments)
    model = next((flags[name] for name in _MODEL_NAMES if flags.get(name)), _DEFAULT_MODEL)
    if runtime is None:
        part = ("frontend",) if module == FRONTEND else ("worker", model)
        name = "a small simulation (the Dynamo runtime is not installed)"
        return Program((*simulation, *part), f"{name} stands for {module}")
    python = (str(runtime.python), "-m")
    if module == FRONTEND:
        return Program((*python, FRONTEND, *arguments), f"{FRONTEND} {runtime.version}")
    mode = _mode(flags, labels)
    if not mode and _takes_loras(container, flags):
        worker = (str(runtime.python), str(LORA_WORKER), str(runtime.model), model)
        return Program(
            worker, f"a worker of {runtime.version} stands for {module}: {_RANDOM}, LoRAs by name only"
        )
    kept = {"--max-model-len": _CONTEXT_TOKENS} | {name: flags[name] for name in _KEPT if flags.get(name)}
    if mode:
        kept["--disaggregation-mode"] = mode
    own = ("--model-path", str(runtime.model), "--model-name", model)
    command = (*python, MOCKER, *own, *(word for flag in kept.items() for word in flag))
    return Program(command, f"{MOCKER} {runtime.version} stands for {module}: {_RANDOM}")


def _takes_loras(container: Object, flags: Mapping[str, str]) -> bool:
    return "--enable-lora" in flags or _LORA_SWITCH in container.get("env", ())


def _mode(flags: Mapping[str, str], labels: Mapping[str, str]) -> str:
    for mode in _MODES:
        if f"--is-{mode}-worker" in flags or flags.get("--disaggregation-mode") == mode:
            return mode
    if "--disaggregation-mode" not in flags and labels.get(_SUB_COMPONENT) in _MODES:
        return labels[_SUB_COMPONENT]
    return ""


def _until_an_operator(words: Sequence[str]) -> list[str]:
    end = next((i for i, word in enumerate(words) if word in ("&", "&&", "||", "|", ";")), len(words))
    return list(words[:end])


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            flags[name] = value
        elif name:
            flags[name] = flags[name] or word
    return flags
