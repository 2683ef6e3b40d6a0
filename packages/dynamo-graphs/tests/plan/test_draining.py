"""A new drain period restarts no pod; any other change brings it along."""

import msgspec

from dynamo_operator.features.takeover.plan import starts_to_drain, without_new_drain
from kube_runtime.kind import Object

DRAIN: Object = {"preStop": {"sleep": {"seconds": 10}}}
GPU: Object = {"limits": {"nvidia.com/gpu": "1"}}


def deployment(image: str = "a:1", **main: object) -> Object:
    container: Object = {"name": "main", "image": image, **main}
    template = {"metadata": {}, "spec": {"containers": [container]}}
    return {"kind": "Deployment", "metadata": {}, "spec": {"template": template}}


def clique_set(**lifecycles: Object | None) -> Object:
    cliques = [
        {
            "name": name,
            "spec": {
                "podSpec": {"containers": [{"name": "main", **({"lifecycle": one} if one else {})}]}
            },
        }
        for name, one in lifecycles.items()
    ]
    return {"kind": "PodCliqueSet", "metadata": {}, "spec": {"template": {"cliques": cliques}}}


def test_pods_that_run_without_a_drain_keep_their_template() -> None:
    wanted, live = deployment(lifecycle=DRAIN), deployment()
    assert live == without_new_drain(wanted, deployment(), live)


def test_a_change_of_another_kind_brings_the_drain() -> None:
    wanted = deployment("a:2", lifecycle=DRAIN)
    assert wanted == without_new_drain(wanted, deployment("a:2"), deployment("a:1"))


def test_a_pre_stop_that_users_add_is_written() -> None:
    wanted = deployment(lifecycle=DRAIN)  # also without drain periods: the user asks for it
    assert wanted == without_new_drain(wanted, wanted, deployment())


def test_a_request_that_repeats_its_limit_is_no_other_change() -> None:
    repeated: Object = {"resources": {**GPU, "requests": GPU["limits"]}}
    wanted = deployment(lifecycle=DRAIN, resources=GPU)
    found = without_new_drain(wanted, deployment(resources=GPU), deployment(**repeated))
    assert deployment(**repeated) == found


def test_each_service_of_a_set_is_judged_by_itself() -> None:
    live = clique_set(decode=None, prefill=None)
    wanted = clique_set(decode=DRAIN, prefill=DRAIN)
    undrained = clique_set(decode=None, prefill=DRAIN)
    expected = clique_set(decode=None, prefill=DRAIN)
    assert expected == without_new_drain(wanted, undrained, live)


def test_only_more_pods_that_drain_than_before_are_worth_a_look() -> None:
    live = [
        msgspec.json.encode(each["spec"]) for each in (deployment(), deployment(lifecycle=DRAIN))
    ]
    assert [True, False] == [starts_to_drain(deployment(lifecycle=DRAIN), each) for each in live]
    assert not any(starts_to_drain(deployment(), each) for each in live)
    assert not starts_to_drain({"kind": "Service", "spec": {}}, b"{}")
