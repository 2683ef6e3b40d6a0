"""Declarations of a struct that are more than data."""

from kube_runtime.crd import immutable


def test_an_immutable_field_may_stay_absent_but_neither_come_nor_change() -> None:
    rule = immutable("source", "spec.source")
    expected = "(has(self.source) ? self.source : '') == (has(oldSelf.source) ? oldSelf.source : '')"
    assert (expected, ".source") == (rule.expression, rule.path)
    assert "spec.source is immutable and cannot be changed after creation" == rule.message
