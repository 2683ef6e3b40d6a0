"""Environment variables, and the JSON in `DYN_DEPLOYMENT_CONFIG`.

The operator reads replicas and resources of services from that JSON; the rest belongs to the process.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dynamo_graphs.api.deployment_config import VARIABLE, folded
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.bounds import MOST_REPLICAS, counted
from dynamo_graphs.validation.quantities import quantity_problems
from dynamo_graphs.validation.shape import ENVIRONMENT, shape_problems
from kube_runtime.kind import Fields


def shared_environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables whose JSON types are not checked yet."""
    has_wrong_types = yield from counted(shape_problems(entries, ENVIRONMENT, path))
    if not has_wrong_types:
        yield from environment_problems(entries, path)


def environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of variables that have the right JSON types.

    A repeated name is valid here: in `envs` the later entry wins.
    """
    yield from _entry_problems(entries, path)
    yield from _config_problems(entries, path)


def unique_environment_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
    """Problems of the variables of a container, where each name may appear once."""
    yield from _entry_problems(entries, path)
    seen = set[str]()
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if name and name in seen:
            message = f'duplicate variable "{name}"'
            yield Problem(f"{path}[{index}].name", message, ProblemKind.DUPLICATE)
        if name:
            seen.add(name)


def _entry_problems(entries: Sequence[Any], path: str) -> Iterator[Problem]:
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
