"""Convert the keyword arguments of a service to JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard, cast

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.library.fields import ServiceOptions
from dynamo_graphs.library.objects import plain, wire_fields, with_fields
from dynamo_graphs.validation import Problem
from kube_runtime.kind import Object

_CONTAINER = ("image", "command", "args")
_SHORT = ("gpus", "nodes", "env", *_CONTAINER)


def with_options(service: Object, given: ServiceOptions, path: str) -> Object:
    """Return the service with these options; a pod spec is merged into its own, None removes a field.

    Options with the wrong type (see `misfits`) are omitted.

    Raises: InvalidObject.
    """
    options = _fitting(given)
    fields = wire_fields(
        ComponentSpec, {key: value for key, value in options.items() if key not in _SHORT}, path
    )
    pod = fields.get("extraPodSpec")
    if isinstance(pod, dict):
        fields["extraPodSpec"] = _merged(service.get("extraPodSpec"), pod)
    made = with_fields(service, fields)
    if "gpus" in options:
        gpus = {"limits": {"gpu": str(options["gpus"])}}
        made["resources"] = _merged(made.get("resources"), gpus)
    if "nodes" in options:
        nodes = options["nodes"]
        made = with_fields(made, {"multinode": None if nodes == 1 else {"nodeCount": nodes}})
    if env := options.get("env"):
        listed = made.get("envs")
        others = [
            variable
            for variable in (listed if isinstance(listed, list) else ())
            if not (isinstance(variable, dict) and variable.get("name") in env)
        ]
        made["envs"] = [*others, *({"name": key, "value": value} for key, value in env.items())]
    main: Object = {
        name: list(value) if _is_list(value) else value
        for name, value in options.items()
        if name in _CONTAINER
    }
    if main:
        made["extraPodSpec"] = _merged(made.get("extraPodSpec"), {"mainContainer": main})
    return plain(made, path)


def over(defaults: ServiceOptions, given: ServiceOptions) -> ServiceOptions:
    """Merge options over defaults; variables, pod specs and arguments are combined."""
    both: ServiceOptions = {**defaults, **given}
    fit = _fitting(given)
    if "env" in fit:
        both["env"] = {**defaults.get("env", {}), **fit["env"]}
    if "args" in fit:
        both["args"] = [*defaults.get("args", ()), *fit["args"]]
    pod = given.get("extra_pod_spec")
    if isinstance(pod, dict):
        both["extra_pod_spec"] = _merged(defaults.get("extra_pod_spec"), pod)
    return both


def misfits(options: Mapping[str, object], path: str) -> Iterator[Problem]:
    """Yield the problems of short forms, which have no schema: values of the wrong type."""
    for name, (is_fit, expected) in _SHORT_FORMS.items():
        if name in options and not is_fit(options[name]):
            got = f"{options[name]}"[:_LONGEST]
            yield Problem(f"{path}.{name}", f'invalid value "{got}" (expected {expected})')


def _fitting(options: ServiceOptions) -> ServiceOptions:
    """The options without short forms of the wrong type."""
    fitting = {
        name: value
        for name, value in options.items()
        if name not in _SHORT_FORMS or _SHORT_FORMS[name][0](value)
    }
    return cast("ServiceOptions", fitting)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_LONGEST = 60
_LIST = (_is_list, 'a list of text, for example ["--max-model-len", "8192"]')
_SHORT_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "gpus": (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
        "an integer, for example 2",
    ),
    "env": (
        lambda value: isinstance(value, Mapping),
        'names and text, for example {"HF_HOME": "/models"}',
    ),
    "image": (lambda value: isinstance(value, str), "the name of an image"),
    "command": _LIST,
    "args": _LIST,
}
"""For each short form: whether a value has its type, and the expectation in messages."""


def _merged(target: object, fields: Object) -> Object:
    """Merge fields into a copy of an object; None removes a field."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in fields.items():
        own = result.get(key)
        both = _merged(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
        result[key] = both
    return {key: value for key, value in result.items() if value is not None}
