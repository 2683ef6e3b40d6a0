"""What the operator writes into a status is what the schema takes, and nothing less."""

import pytest

from cluster.api.judge import Judge
from cluster.api.statuses import BAD, GOOD
from cluster.world import Refused
from kube_runtime.types.meta import Object


@pytest.mark.parametrize("name", GOOD)
def test_a_status_is_kept_as_it_was_written(judge: Judge, namespace: str, name: str) -> None:
    owner, status = GOOD[name]
    assert status == judge.status(in_namespace(owner, namespace), status)


@pytest.mark.parametrize("name", BAD)
def test_a_status_that_breaks_a_rule_is_refused(judge: Judge, namespace: str, name: str) -> None:
    owner, status = BAD[name]
    with pytest.raises(Refused, match="is invalid"):
        judge.status(in_namespace(owner, namespace), status)


def in_namespace(owner: Object, namespace: str) -> Object:
    return {**owner, "metadata": {"name": "x", "namespace": namespace}}
