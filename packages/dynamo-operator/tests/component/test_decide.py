"""What a component's reconcile decides, from inputs that are values."""

from dynamo_operator.component.decide import decide
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Key
from specs import a_component

INGRESS = {"enabled": True, "host": "chat", "ingressControllerClassName": "public"}


def test_an_invalid_component_is_refused_and_nothing_is_written() -> None:
    problem = Problem("spec.replicas", "is negative")
    decision = decide(a_component(), ComponentInputs(Facts()), RenderSettings(), lambda _: (problem,))
    assert decision.stop is not None
    assert "ValidationFailed" == decision.stop.reason
    assert ((), ()) == (decision.around, decision.workloads)


def test_an_ingress_that_is_not_allowed_is_neither_written_nor_deleted() -> None:
    component = a_component("chat", componentType="frontend", ingress=INGRESS)
    settings = RenderSettings(ingress_allowed_classes="internal")
    decision = decide(component, ComponentInputs(Facts()), settings, lambda _: ())
    assert "Ingress" not in {body["kind"] for body in decision.around}
    assert ["Ingress"] == [blocked.kind for blocked in decision.blocked]
    assert ("Ingress", Key(component.metadata.namespace, "chat")) in decision.spared
    assert ["Deployment"] == [body["kind"] for body in decision.workloads]
