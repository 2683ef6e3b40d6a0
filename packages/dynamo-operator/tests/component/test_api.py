"""What users override in a component survives, whatever it is."""

import msgspec

from dynamo_operator.crds import RESOURCES


def test_user_overrides_keep_what_we_do_not_know() -> None:
    pod = {"mainContainer": {"image": "i", "fieldOfTomorrow": {"deep": [1, None]}}}
    for resource in RESOURCES[:2]:
        component = {"extraPodSpec": pod}
        is_graph = resource is RESOURCES[0]
        spec = {"services": {"A": component}} if is_graph else component
        value = msgspec.convert({"spec": spec}, resource)
        assert {"spec": spec} == msgspec.to_builtins(value)
