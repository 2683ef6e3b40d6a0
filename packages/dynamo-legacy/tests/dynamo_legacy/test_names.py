"""Names of the older generation stay what running objects have."""

import pytest

from dynamo_legacy.names import component_name, default_dynamo_namespace, nim_name, tag_parts


def test_a_tag_has_a_name_and_a_version() -> None:
    assert ("frontend", "jh2o6dqz") == tag_parts("frontend:jh2o6dqz")


@pytest.mark.parametrize("tag", ["frontend", "frontend:", ":1"])
def test_a_tag_without_one_of_them_is_invalid(tag: str) -> None:
    with pytest.raises(ValueError, match="invalid tag"):
        tag_parts(tag)


def test_names_of_objects_do_not_change() -> None:
    assert "frontend--jh2o6dqz" == nim_name("frontend:jh2o6dqz")
    assert "chat-worker" == component_name("chat", "Worker")
    assert "dynamo-chat" == default_dynamo_namespace("chat")
