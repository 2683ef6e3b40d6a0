"""Parts of the translation of a component of the older generation."""

from dynamo_legacy.translate import first_of_each_name, http_port, ignored_switches, switch


def test_of_two_variables_of_one_name_the_first_counts() -> None:
    first, second = {"name": "A", "value": "1"}, {"name": "A", "value": "2"}
    assert [first] == first_of_each_name([first, second])


def test_without_its_variable_the_port_is_that_of_bentoml() -> None:
    assert 3000 == http_port(({"name": "A", "value": "8080"},))


def test_no_annotation_is_no_switch() -> None:
    assert "" == switch({}, "anything")
    assert () == ignored_switches({})
