"""What cannot work as written is a warning, in the status too, and nothing that works is."""

import time
from typing import Any

import msgspec
import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.status import configuration_warning
from dynamo_operator.graph.warnings import graph_inoperative
from kube_runtime.kind import Object
from kube_runtime.types.meta import Condition
from reviews.asking import verdict
from reviews.rows import component, graph, with_service
from specs import a_graph

SHELL = ["/bin/sh", "-c"]
NODES: Object = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}}
VLLM = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}
PORT = {"name": "system", "containerPort": 9090}


def service(main: Object, kind: str = "worker", **more: Any) -> Object:
    main = {"image": "r/x:1", **main}
    return {"componentType": kind, "extraPodSpec": {"mainContainer": main}, **more}


def warnings_of(one: Object, framework: str | None = None) -> list[str]:
    named = {"backendFramework": framework} if framework else {}
    return [str(warning) for warning in graph_inoperative(a_graph({"w": one}, **named))]


LORAS: Object = {"envs": [{"name": "DYN_LORA_ENABLED", "value": "true"}]}


def way(**fields: Any) -> Object:
    return service({"args": ["run"]}, ingress={"enabled": True, **fields})


WRONG = [
    (service({}), "neither command nor args"),
    (service({}, "planner"), "neither command nor args"),
    (service({}, "router"), "neither command nor args"),
    (service({"command": SHELL}), "no arguments"),
    (service({"args": ["--model", "m"]}), "or backendFramework to start its engine"),
    (service({"args": ["--port", "1"]}, "planner"), 'cannot run the flag "--port" as a script'),
    (service({"command": SHELL, "args": ["--model", "m"]}), "set command"),
    (service({"command": ["python3"], "args": ["--model", "m"]}), "does not accept the flag"),
    (service({"command": ["python3"], "args": ["--router-mode"]}, "frontend"), "does not accept"),
    (service({"args": ["kv"]}, "frontend"), 'args replace "-m dynamo.frontend"'),
    (service({"args": ["python3 -m dynamo.frontend"]}, "frontend"), "args replace"),
    (service({**VLLM, "args": ["--model m --tp 2"]}), "is one argument"),
    (service({"args": ["run"], "ports": [{"containerPort": 9090}]}), 'missing port "system"'),
    (
        service({"ports": [{"name": "api", "containerPort": 8000}]}, "frontend"),
        'missing port "http"',
    ),
    (
        service({"command": ["python3", "-m", "dynamo.global_planner"]}, "default"),
        'only a service with componentType "planner"',
    ),
    (service(VLLM, **LORAS), "no API for LoRAs without --enable-lora"),
    (service(VLLM, **NODES), "each of the 2 nodes runs a separate server"),
    (
        service({"command": ["bash", "-c", "python3 -m dynamo.sglang"]}, **NODES),
        "from command to args",
    ),
    (way(host="h"), "no Ingress is created without a class"),
    (way(host="h", useVirtualService=True), "no VirtualService is created without a gateway"),
    (
        way(
            host="h",
            useVirtualService=True,
            virtualServiceGateway="",
            ingressControllerClassName="n",
        ),
        "ingress.virtualServiceGateway: no VirtualService is created",
    ),
    (way(host="h.example.org", ingressControllerClassName="n"), '"h.example.org.local"'),
]

FINE = [
    service({"command": ["python3", "-m", "planner_sla"]}, "planner"),
    service({**VLLM, "args": ["--enable_lora"]}, **LORAS),
    service({**VLLM, "args": ["--config", "engine.yaml"]}, **LORAS),
    service({"command": ["python3", "-m", "dynamo.mocker"]}, **LORAS),
    service({"args": ["run"]}),
    service({"command": ["run"]}),
    service({"command": [*SHELL, "run"]}),
    service({"command": SHELL, "args": ["run"]}),
    service({}, "frontend"),
    service({"args": ["--router-mode", "kv"]}, "frontend"),
    service({"args": ["-m", "dynamo.frontend"]}, "frontend"),
    service({"args": ["/app/frontend.py"]}, "frontend"),
    service({"command": ["python3"], "args": ["-m", "own"]}, "frontend"),
    service({"command": ["python3"], "args": ["--version"]}),
    service(VLLM),
    service({**VLLM, "args": ["--model", "m", "--json", '{"a": 1, "--b": 2}', "--json={'a': 1}"]}),
    service({"args": ["run"], "ports": [PORT]}),
    service({"args": ["run"], "ports": [{"name": "own", "containerPort": 1}]}, "router"),
    service({**VLLM, "args": ["--tensor-parallel-size", "16"]}, **NODES),
    service({**VLLM, "args": ["--data-parallel-size=16"]}, **NODES),
    service({"command": ["python3", "-m", "dynamo.sglang"]}, **NODES),
    way(host="h", ingressControllerClassName="n"),
    way(host="h", useVirtualService=True, virtualServiceGateway="istio-system/public"),
    way(host="h.a", hostSuffix="b", ingressControllerClassName="n"),
    service({"args": ["run"]}, ingress={"enabled": False, "host": "a.b"}),
]


@pytest.mark.parametrize(("one", "expected"), WRONG)
def test_what_cannot_work_is_reported(one: Object, expected: str) -> None:
    (text,) = warnings_of(one)
    assert expected in text
    assert text.startswith("spec.services.w.")


@pytest.mark.parametrize("one", FINE)
def test_what_works_is_not_spoken_of(one: Object) -> None:
    assert [] == warnings_of(one)


def test_flags_of_a_named_engine_are_fine() -> None:
    assert [] == warnings_of(service({"args": ["--model", "m"]}), "vllm")


def test_probes_of_ones_own_need_no_named_port() -> None:
    probe = {"httpGet": {"path": "/", "port": 9090}}
    main = {"args": ["run"], "ports": [{"containerPort": 9090}], "startupProbe": probe}
    assert [] == warnings_of(service(main, livenessProbe=probe, readinessProbe=probe))
    assert 1 == len(warnings_of(service({**main, "startupProbe": {"periodSeconds": 1}})))


def test_admission_warns_of_graphs_and_components() -> None:
    pod = {"mainContainer": {"image": "r/x:1"}}
    for new in (with_service(extraPodSpec=pod), component(extraPodSpec=pod)):
        decision = verdict(new)
        assert decision.allowed
        assert any("neither command nor args" in warning for warning in decision.warnings)


def test_admission_and_the_status_say_that_a_gateway_is_missing() -> None:
    ingress = {"enabled": True, "host": "h", "useVirtualService": True}
    main = {"image": "r/x:1", "args": ["run"]}
    decision = verdict(component(ingress=ingress, extraPodSpec={"mainContainer": main}))
    assert decision.allowed
    (warning,) = decision.warnings
    assert warning.startswith("spec.ingress.virtualServiceGateway: no VirtualService")
    (warned,) = configuration_warning(stored(way(host="h", useVirtualService=True)))
    assert "spec.services.w.ingress.virtualServiceGateway" in warned.message


def test_a_virtual_service_that_is_not_created_for_want_of_istio_is_named() -> None:
    graph = stored(
        way(host="h", useVirtualService=True, virtualServiceGateway="istio-system/public")
    )
    assert () == configuration_warning(graph)
    (warned,) = configuration_warning(graph, istio_served=False)
    assert "spec.services.w.ingress.useVirtualService: no VirtualService is" in warned.message


def stored(one: Object, *conditions: Condition) -> DynamoGraphDeployment:
    return msgspec.structs.replace(
        a_graph({"w": one}), status=DynamoGraphDeploymentStatus(conditions=conditions)
    )


def test_the_status_reports_it_until_it_is_corrected() -> None:
    (warned,) = configuration_warning(stored(service({})))
    assert ("ConfigurationWarning", "True") == (warned.type, warned.status)
    assert "neither command nor args" in warned.message
    (corrected,) = configuration_warning(stored(service({"args": ["run"]}), warned))
    assert ("False", "no_warning") == (corrected.status, corrected.reason)


def test_a_graph_that_never_had_a_warning_has_no_such_condition() -> None:
    assert () == configuration_warning(stored(service({"args": ["run"]})))


def test_many_services_with_much_to_say_give_one_short_message() -> None:
    (warning,) = configuration_warning(a_graph({f"w{number}": service({}) for number in range(25)}))
    assert len(warning.message) <= 1024


@pytest.mark.parametrize("piece", ["--a ", "-tp 1 ", "python3 ", "'", "$(a)", "x=1 --"])
def test_it_takes_time_that_grows_like_the_text(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    began = time.process_time()
    warnings_of(service({**VLLM, "args": [text, "--x " + text]}, **NODES), "vllm")
    warnings_of(service({"args": [text]}, "frontend"))
    assert time.process_time() - began < 5


def test_the_rows_of_other_tests_are_fine() -> None:
    assert () == verdict(graph({"w": service({"args": ["run"]})})).warnings
