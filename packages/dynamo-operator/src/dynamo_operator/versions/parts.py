"""Parts of JSON objects."""

from collections.abc import Container, Mapping

from kube_runtime.types.meta import Fields, Object


# An object has few of the fields that it may have.
def some(source: Fields, names: Container[str]) -> Object:
    """The fields of these names that an object has."""
    return {name: value for name, value in source.items() if name in names}


def without(source: Fields, *names: str) -> Object:
    """An object without the fields of these names."""
    return {name: value for name, value in source.items() if name not in names}


def present(**fields: object) -> Object:
    """An object of the fields that are not empty."""
    return {name: value for name, value in fields.items() if value}


def renamed(source: Fields, names: Mapping[str, str]) -> Object:
    """The fields that have a new name, under that name."""
    return {names[name]: value for name, value in source.items() if name in names}


def reversed_names(names: Mapping[str, str]) -> dict[str, str]:
    """The old name by the new one."""
    return {new: old for old, new in names.items()}
