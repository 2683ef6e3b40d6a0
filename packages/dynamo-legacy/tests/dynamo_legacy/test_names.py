"""Names of the older generation stay what running objects have."""

from dynamo_legacy.names import nim_name


def test_the_name_of_a_tag() -> None:
    assert nim_name("frontend:jh2o6dqzpsgfued4") == "frontend--jh2o6dqzpsgfued4"
    assert nim_name("My_Graph:V1") == "my-graph--v1"
