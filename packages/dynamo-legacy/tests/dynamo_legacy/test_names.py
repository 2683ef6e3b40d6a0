"""Names of the older generation stay what running objects have."""

from dynamo_legacy.names import component_name, default_dynamo_namespace, nim_name, tag_parts


def test_a_tag_has_a_name_and_a_version() -> None:
    assert ("frontend", "jh2o6dqz") == tag_parts("frontend:jh2o6dqz")


def test_names_of_objects_do_not_change() -> None:
    assert "frontend--jh2o6dqz" == nim_name("frontend:jh2o6dqz")
    assert "chat-worker" == component_name("chat", "Worker")
    assert "dynamo-chat" == default_dynamo_namespace("chat")
