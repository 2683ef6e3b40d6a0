"""The rules of one component, the same for a graph's service and for a component written by hand.

They report all problems at once, and a component that passes renders without an exception. The API server
has more rules, for pods above all; the status quotes what it refuses (`Obstacle.REJECTED`).
"""

import re
from collections.abc import Iterator
from itertools import chain

from dynamo_graphs.api.component import (
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
)
from dynamo_graphs.api.component_fields import IngressSpec, ingress_host
from dynamo_graphs.api.framework import framework
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind, component_path
from dynamo_graphs.validation.annotations import metadata_problems
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, MOST_REPLICAS, counted, first_problems
from dynamo_graphs.validation.endpoint_picker import lone_picker_problems, picker_problems
from dynamo_graphs.validation.environment import environment_problems
from dynamo_graphs.validation.multinode import multinode_problems
from dynamo_graphs.validation.pod import account_problems, pod_problems, probe_problems
from dynamo_graphs.validation.quantities import resource_problems
from dynamo_graphs.validation.shape import ENVIRONMENT, POD, PROBE, shape_problems
from dynamo_graphs.validation.syntax import (
    annotation_problems,
    is_subdomain,
    label_problems,
    name_problems,
)
from dynamo_graphs.validation.volumes import volume_problems
from kube_runtime.crd.declare import INT_OR_PERCENT_PATTERN
from kube_runtime.kind import Fields, Object

_BOUND = re.compile(INT_OR_PERCENT_PATTERN, re.ASCII)


def component_problems(
    component: DynamoComponentDeployment,
    settings: RenderSettings,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """The problems of a component, sorted by path; no more than `most`."""
    own = spec_problems(component.spec, "spec", component.metadata.namespace, settings)
    return first_problems(chain(own, lone_picker_problems(component)), most)


def spec_problems(
    spec: DynamoComponentDeploymentSpec, path: str, namespace: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of a component's spec, which is at `path`, in that namespace."""
    has_wrong_types = yield from counted(_type_problems(spec, path))
    yield from _size_problems(spec, path)
    yield from _disruption_problems(spec, f"{path}.disruptionBudget")
    yield from picker_problems(spec, path)
    yield from metadata_problems(spec, path)
    yield from _ingress_problems(spec.ingress, path)
    if has_wrong_types:
        return  # the rules below rely on these types
    pod = spec.extra_pod_spec or {}
    main = pod.get("mainContainer") or {}
    backend = framework(spec)
    if backend.problem:
        yield Problem(f"{path}.extraPodSpec.mainContainer.command", backend.problem)
    yield from pod_problems(spec, pod, f"{path}.extraPodSpec")
    yield from account_problems(spec, pod, namespace, f"{path}.extraPodSpec", settings)
    yield from volume_problems(spec, pod, path, backend.name)
    yield from multinode_problems(spec, path, backend.name, settings)
    at = f"{path}.extraPodSpec.mainContainer.resources"
    yield from resource_problems(
        main.get("resources") or {}, at, spec.resources, f"{path}.resources"
    )
    yield from _resource_claim_problems(spec, pod, path)
    yield from environment_problems(spec.envs, f"{path}.envs")
    for field, probe in _own_probes(spec).items():
        yield from probe_problems(probe, f"{path}.{field}")


def _own_probes(spec: DynamoComponentDeploymentSpec) -> Object:
    both = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: probe for name, probe in both.items() if probe is not None}


def _type_problems(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    yield from shape_problems(spec.extra_pod_spec, POD, f"{path}.extraPodSpec")
    yield from shape_problems(spec.envs, ENVIRONMENT, f"{path}.envs")
    for field, probe in _own_probes(spec).items():
        yield from shape_problems(probe, PROBE, f"{path}.{field}")


def _size_problems(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    if spec.replicas is not None and spec.replicas < 0:
        yield Problem(f"{path}.replicas", f"{component_path(path)}.replicas must be non-negative")
    elif spec.replicas is not None and spec.replicas > MOST_REPLICAS:
        yield Problem(f"{path}.replicas", f"must be between 0 and {MOST_REPLICAS}")
    if spec.model_ref is not None and not spec.model_ref.name:
        yield Problem(f"{path}.modelRef.name", "missing name", ProblemKind.REQUIRED)
    if spec.env_from_secret:
        yield from name_problems(spec.env_from_secret, f"{path}.envFromSecret", "a Secret")


def _ingress_problems(ingress: IngressSpec | None, component: str) -> Iterator[Problem]:
    if ingress is None or not ingress.enabled:
        return
    path = f"{component}.ingress"
    if not ingress.host:
        message = f"{component_path(component)}.ingress.host is required when ingress is enabled"
        yield Problem(f"{path}.host", message, ProblemKind.REQUIRED)
    else:
        yield from host_problems(ingress, f"{path}.host")
    if ingress.ingress_controller_class_name:
        at = f"{path}.ingressControllerClassName"
        yield from name_problems(ingress.ingress_controller_class_name, at, "an IngressClass")
    if ingress.tls is not None and ingress.tls.secret_name:
        yield from name_problems(ingress.tls.secret_name, f"{path}.tls.secretName", "a Secret")
    if ingress.use_virtual_service and ingress.virtual_service_gateway:
        for name in ingress.virtual_service_gateway.split("/", 1):  # NAME, or NAMESPACE/NAME
            yield from name_problems(name, f"{path}.virtualServiceGateway", "a Gateway")
    yield from label_problems(ingress.labels, f"{path}.labels")
    yield from annotation_problems(ingress.annotations, f"{path}.annotations")


def host_problems(ingress: IngressSpec, path: str) -> Iterator[Problem]:
    """Report a host that is invalid once prefix and suffix are added."""
    host = ingress_host(ingress)
    if not is_subdomain(host.removeprefix("*.")):
        yield Problem(path, f'invalid host name "{host}"')


def _resource_claim_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str
) -> Iterator[Problem]:
    """Report resource claims of the main container that the pod does not declare."""
    declared = {claim.get("name") for claim in pod.get("resourceClaims") or ()}
    resources = (pod.get("mainContainer") or {}).get("resources") or {}
    places = {
        f"{path}.resources": spec.resources.claims if spec.resources else (),
        f"{path}.extraPodSpec.mainContainer.resources": resources.get("claims") or (),
    }
    for place, claims in places.items():
        for index, claim in enumerate(claims):
            name = claim.get("name")
            if not name or name not in declared:
                message = f'"{name or ""}" not found in extraPodSpec.resourceClaims'
                yield Problem(f"{place}.claims[{index}].name", message)


def _disruption_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of a component's disruption budget."""
    budget = spec.disruption_budget
    if budget is None:
        return
    bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
    given = {field: bound for field, bound in bounds.items() if bound is not None}
    if len(given) > 1:
        message = "minAvailable and maxUnavailable must not both be set"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    for field, bound in given.items():
        if not _is_bound(bound):
            expected = "expected a number of pods or a percentage, for example 25%"
            yield Problem(f"{path}.{field}", f'invalid bound "{str(bound)[:60]}" ({expected})')
    if given and spec.nodes > 1:
        message = "budgets apply to single-node components only; the pods of a multinode group are one unit"
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _is_bound(bound: int | str) -> bool:
    if isinstance(bound, str):
        if len(bound) > len(str(MOST_REPLICAS)) or not _BOUND.fullmatch(bound):
            return False
        return bound.endswith("%") or int(bound) <= MOST_REPLICAS
    return 0 <= bound <= MOST_REPLICAS
