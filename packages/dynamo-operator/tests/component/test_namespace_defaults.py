"""What running pods keep of their namespace, by the record on their workload, which others can write too."""

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.namespace_defaults import running_defaults
from dynamo_operator.shared.cluster import Facts, NamespaceDefaults
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Metadata

NOW = NamespaceDefaults(("new",), "marked")
FACTS = Facts(component_service_accounts=frozenset({"marked"}))


def kept(record: str) -> NamespaceDefaults:
    annotations = {labels.NAMESPACE_DEFAULTS: record}
    spec = msgspec.Raw(b'{"template": {"spec": {"containers": []}}}')
    live = Deployment(Metadata("chat-decode", annotations=annotations), spec=spec)
    return running_defaults("chat-decode", "pods", NOW, live, FACTS, is_idle=False)


def test_a_forged_record_brings_no_service_account_that_is_not_marked() -> None:
    record = '{"chat-decode": {"serviceAccountName": "admin", "imagePullSecrets": ["old"]}}'
    assert NamespaceDefaults(("old",), "marked") == kept(record)


def test_a_record_that_is_not_one_counts_as_none() -> None:
    for record in ("", "5", "[" * 10_000, '{"chat-decode": 5}'):
        assert NamespaceDefaults() == kept(record)
