"""The variable `DYN_DEPLOYMENT_CONFIG`: JSON whose sizes become part of a component's spec.

Only what is read from it is checked; the rest belongs to the process.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.quantities import quantity_problems
from kube_runtime.kind import Fields, Object

_VARIABLE = "DYN_DEPLOYMENT_CONFIG"
_MAX_REPLICAS = 2**31 - 1


def deployment_config_problems(envs: Iterable[Any], path: str) -> Iterator[Problem]:
    """Validate each occurrence of the variable in a list of variables."""
    for index, entry in enumerate(envs):
        if entry.get("name") != _VARIABLE:
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
                yield from _entry_problems(_folded(sizes).get("serviceargs"), f"{at}[{service}]")


def _entry_problems(arguments: object, path: str) -> Iterator[Problem]:
    if arguments is None:
        return
    at = f"{path}.ServiceArgs"
    if not isinstance(arguments, dict):
        yield Problem(at, "expected an object")
        return
    workers = _folded(arguments).get("workers")
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not (is_number and 0 <= workers <= _MAX_REPLICAS):
        yield Problem(f"{at}.workers", f"expected a number from 0 to {_MAX_REPLICAS}")
    resources = _folded(arguments).get("resources")
    if resources is None:
        return
    if not isinstance(resources, dict):
        yield Problem(f"{at}.resources", "expected an object")
        return
    for name, value in _amounts(_folded(resources), f"{at}.resources"):
        if isinstance(value, str):
            yield from quantity_problems(value, name)
        else:
            yield Problem(name, "expected a string, for example a quoted number")


def _amounts(resources: Fields, path: str) -> Iterator[tuple[str, object]]:
    """Every amount with its place; an unset one counts as not given."""
    custom = resources.get("custom")
    if isinstance(custom, dict):
        yield from ((f"{path}.custom[{name}]", value) for name, value in custom.items())
    elif custom is not None:
        yield f"{path}.custom", custom
    for name in ("cpu", "memory", "gpu"):
        if resources.get(name) not in (None, ""):
            yield f"{path}.{name}", resources[name]


def _folded(value: Fields) -> Object:
    """The entries under lower-case names: below a service's entry, case does not count."""
    return {name.lower(): each for name, each in value.items()}
