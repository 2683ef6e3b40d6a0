"""Each built-in kind has one type, with the group and the plural of the API server."""

from kube_runtime.types import kinds
from kube_runtime.types.meta import Resource

ALL = [
    type_
    for type_ in vars(kinds).values()
    if isinstance(type_, type) and issubclass(type_, Resource) and hasattr(type_, "KIND")
]


def test_a_plural_is_the_name_in_lower_case_and_its_ending() -> None:
    assert len(ALL) > 20
    for type_ in ALL:
        assert type_.KIND.plural.startswith(type_.KIND.name.lower()[:-1])
        assert type_.KIND.version.startswith("v")


def test_no_kind_is_declared_twice_but_for_one_of_its_metadata() -> None:
    for types in (whole := [type_ for type_ in ALL if not type_.METADATA_ONLY], [*{*ALL} - {*whole}]):
        assert len(types) == len({type_.KIND for type_ in types})
