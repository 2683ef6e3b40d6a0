"""JSONPath as kubectl documents it: https://kubernetes.io/docs/reference/kubectl/jsonpath/."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoctl.jsonpath import template

DOCUMENT = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {
                "capacity": {"cpu": "4"},
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}],
            },
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [
        {"name": "myself", "user": {}, "age": 3, "isGuest": True},
        {"name": "e2e", "user": {"username": "admin", "password": "secret"}, "age": 40},
    ],
}
"""The document of that page, with an age for each user."""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kind is {.kind}", "kind is List"),
        ("{.kind}", "List"),
        ("{['kind']}", "List"),
        ("{.['kind']}", "List"),
        ("{$.kind}", "List"),
        (".kind", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.users[0].name}", "myself"),
        ("{.users[-1].name}", "e2e"),
        ("{.users[0,1].name}", "myself e2e"),
        ("{.users[0:1].name}", "myself"),
        ("{.users[:].age}", "3 40"),
        ("{.users[::2].age}", "3"),
        ("{.items[1].status.capacity}", '{"cpu":"8"}'),
        ("{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}'),
        ('{.users[?(@.name=="e2e")].user.password}', "secret"),
        ("{.users[?(@.name == 'e2e')].user.password}", "secret"),
        ("{.users[?(@.name!='e2e')].name}", "myself"),
        ("{.users[?(@.age>=3)].name}", "myself e2e"),
        ("{.users[?(@.age<40)].name}", "myself"),
        ("{.users[?(@.isGuest==true)].name}", "myself"),
        ("{.users[?(@.user.password)].name}", "e2e"),
        ("{.users[?(@.name>3)].name}", ""),
        (
            "{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}",
            '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] ',
        ),
        ('{range .items[*]}{.metadata.name}{"\\t"}{end}', "127.0.0.1\t127.0.0.2\t"),
        (
            '{range .items[*]}{range .status.addresses[*]}{.address}{","}{end}{"\\n"}{end}',
            "127.0.0.1,\n127.0.0.2,127.0.0.3,\n",
        ),
        ("{.items[0].metadata.labels.kubernetes\\.io/hostname}", "127.0.0.1"),
        ("{.items[0].metadata.labels['kubernetes\\.io/hostname']}", "127.0.0.1"),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
        ("{.items[0].metadata.labels.*}", "127.0.0.1"),
        ("{.missing.field}", ""),
        ("{.users[0].age}, {.users[0].isGuest}", "3, true"),
    ],
)
def test_what_kubectl_prints(path: str, text: str) -> None:
    assert text == template(path)(DOCUMENT)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("{kind}", 'expected an expression such as .metadata.name at "kind}"'),
        ("{.items[*]", 'missing } at "the end"'),
        ("{.items[}", "expected *, an index, a slice, a 'name' or ?(…)"),
        ("{range .items[*]}{.kind}", "{range} without {end}"),
        ("{.kind}{end}", "{end} without {range}"),
        ("{.users[?(@.name=~/e.e/)].name}", 'expected ) at "=~/e.e/)'),
        ("{.users[?(@.age>1 && @.age<9)].name}", 'expected ) at "&& @.age'),
        ("{.users[(@.length-1)]}", "expected *, an index, a slice, a 'name' or ?(…)"),
    ],
)
def test_what_kubectl_does_not_know_is_refused(path: str, problem: str) -> None:
    with pytest.raises(ValueError, match="for example jsonpath=") as error:
        template(path)
    assert problem in str(error.value)


def test_an_index_out_of_bounds() -> None:
    with pytest.raises(ValueError, match="array index out of bounds: index 2, length 2"):
        template("{.users[2].name}")(DOCUMENT)


@given(st.text())
def test_text_without_braces_is_printed_as_it_is(text: str) -> None:
    literal = "=" + text.replace("{", "")
    assert literal == template(literal)(DOCUMENT)


@given(st.text(alphabet="{}[].*?@$'\"()=!<>,: \\nrangeed012-", max_size=40))
def test_any_template_is_printed_or_refused_in_words(text: str) -> None:
    try:
        template(text)(DOCUMENT)
    except ValueError as error:
        assert str(error)  # noqa: PT017


@given(st.lists(st.text(min_size=1), max_size=5))
def test_a_range_prints_what_a_wildcard_reaches(names: list[str]) -> None:
    document = {"items": [{"name": name} for name in names]}
    assert "".join(f"{name}\n" for name in names) == template('{range .items[*]}{.name}{"\\n"}{end}')(
        document
    )
