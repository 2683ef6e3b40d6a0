"""A request for a device that repeats its limit does not replace pods."""

import msgspec

from dynamo_operator.features.takeover.plan import may_have_more_requests, with_live_requests
from kube_runtime.kind import Object

LIMITS = {"cpu": "8", "nvidia.com/gpu": "1"}
BEFORE = {"limits": LIMITS, "requests": {"cpu": "4", "nvidia.com/gpu": "1"}}
NOW = {"limits": LIMITS, "requests": {"cpu": "4"}}


def stored(workload: Object) -> bytes:
    return msgspec.json.encode(workload["spec"])


def deployment(resources: Object, image: str = "a:1") -> Object:
    main = {"name": "main", "image": image, "resources": resources}
    template = {"metadata": {}, "spec": {"containers": [main]}}
    return {"kind": "Deployment", "metadata": {}, "spec": {"template": template}}


def test_what_an_earlier_version_wrote_stays() -> None:
    assert may_have_more_requests(deployment(NOW), stored(deployment(BEFORE)))
    assert deployment(BEFORE) == with_live_requests(deployment(NOW), deployment(BEFORE))


def test_any_other_change_is_written_without_the_request() -> None:
    wanted = deployment(NOW, image="a:2")
    assert wanted == with_live_requests(wanted, deployment(BEFORE))
    more = deployment({**NOW, "limits": {**LIMITS, "nvidia.com/gpu": "2"}})
    assert more == with_live_requests(more, deployment(BEFORE))


def test_without_such_requests_there_is_nothing_to_compare() -> None:
    plain = deployment({"limits": {"cpu": "1"}})
    assert not may_have_more_requests(plain, stored(plain))
    assert not may_have_more_requests(deployment(NOW), stored(deployment(NOW)))
    assert not may_have_more_requests(deployment(BEFORE), stored(deployment(BEFORE)))
    assert not may_have_more_requests({"kind": "Service", "spec": {}}, b"{}")
