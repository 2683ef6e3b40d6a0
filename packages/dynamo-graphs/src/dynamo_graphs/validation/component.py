"""The rules of one component, the same for a graph's service and for a component written by hand.

All problems are found at once, and what passes here can be rendered without an exception. The API server
has more rules than these, for pods above all; what it refuses is reported with its own message
(`Obstacle.REJECTED`).
"""

from collections.abc import Iterator
from itertools import chain

from dynamo_graphs.api.component import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    IngressSpec,
)
from dynamo_graphs.api.framework import framework
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.account import account_problems
from dynamo_graphs.validation.annotations import metadata_problems
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, counted, first_problems
from dynamo_graphs.validation.deployment_config import deployment_config_problems
from dynamo_graphs.validation.disruption import disruption_problems
from dynamo_graphs.validation.endpoint_picker import lone_picker_problems, picker_problems
from dynamo_graphs.validation.environment import environment_problems
from dynamo_graphs.validation.multinode import multinode_problems
from dynamo_graphs.validation.paths import component_path
from dynamo_graphs.validation.pod import pod_problems
from dynamo_graphs.validation.probes import probe_problems
from dynamo_graphs.validation.quantities import resource_problems
from dynamo_graphs.validation.shape import ENVIRONMENT, POD, PROBE, shape_problems
from dynamo_graphs.validation.syntax import (
    annotation_problems,
    is_subdomain,
    label_problems,
    name_problems,
)
from dynamo_graphs.validation.volumes import volume_problems
from kube_runtime.kind import Fields, Object

_MAX_REPLICAS = 2**31 - 1


def component_problems(
    component: DynamoComponentDeployment,
    settings: RenderSettings,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """Problems of a component, sorted by path: everything, but for more than `most` problems."""
    own = spec_problems(component.spec, "spec", settings)
    account = account_problems(component.spec, component.metadata.namespace, "spec", settings)
    return first_problems(chain(own, account, lone_picker_problems(component)), most)


def spec_problems(
    spec: DynamoComponentDeploymentSpec, path: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of a component's spec, which is at `path`."""
    has_misfits = yield from counted(_misfits(spec, path))
    yield from _size_problems(spec, path)
    yield from disruption_problems(spec, f"{path}.disruptionBudget")
    yield from picker_problems(spec, path)
    yield from metadata_problems(spec, path)
    yield from _ingress_problems(spec.ingress, path)
    if has_misfits:
        return  # the rules below read the parts that do not fit
    pod = spec.extra_pod_spec or {}
    main = pod.get("mainContainer") or {}
    found = framework(spec)
    if found.problem:
        yield Problem(f"{path}.extraPodSpec.mainContainer.command", found.problem)
    yield from pod_problems(spec, pod, f"{path}.extraPodSpec")
    yield from volume_problems(spec, pod, path, found.name)
    yield from multinode_problems(spec, path, found.name, settings)
    at = f"{path}.extraPodSpec.mainContainer.resources"
    yield from resource_problems(
        main.get("resources") or {}, at, spec.resources, f"{path}.resources"
    )
    yield from _claim_problems(spec, pod, path)
    yield from environment_problems(spec.envs, f"{path}.envs")
    yield from deployment_config_problems(spec.envs, f"{path}.envs")
    for field, probe in _own_probes(spec).items():
        yield from probe_problems(probe, f"{path}.{field}")


def _own_probes(spec: DynamoComponentDeploymentSpec) -> Object:
    both = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: probe for name, probe in both.items() if probe is not None}


def _misfits(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    yield from shape_problems(spec.extra_pod_spec, POD, f"{path}.extraPodSpec")
    yield from shape_problems(spec.envs, ENVIRONMENT, f"{path}.envs")
    for field, probe in _own_probes(spec).items():
        yield from shape_problems(probe, PROBE, f"{path}.{field}")


def _size_problems(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    if spec.replicas is not None and spec.replicas < 0:
        yield Problem(f"{path}.replicas", f"{component_path(path)}.replicas must be non-negative")
    elif spec.replicas is not None and spec.replicas > _MAX_REPLICAS:
        yield Problem(f"{path}.replicas", f"must be between 0 and {_MAX_REPLICAS}")
    if spec.model_ref is not None and not spec.model_ref.name:
        yield Problem(f"{path}.modelRef.name", "missing name", ProblemKind.REQUIRED)
    if spec.env_from_secret:
        yield from name_problems(spec.env_from_secret, f"{path}.envFromSecret", "a Secret")


def _ingress_problems(wanted: IngressSpec | None, component: str) -> Iterator[Problem]:
    if wanted is None or not wanted.enabled:
        return
    path = f"{component}.ingress"
    if not wanted.host:
        message = f"{component_path(component)}.ingress.host is required when ingress is enabled"
        yield Problem(f"{path}.host", message, ProblemKind.REQUIRED)
    else:
        yield from host_problems(wanted, f"{path}.host")
    if wanted.ingress_controller_class_name:
        at = f"{path}.ingressControllerClassName"
        yield from name_problems(wanted.ingress_controller_class_name, at, "an IngressClass")
    if wanted.tls is not None and wanted.tls.secret_name:
        yield from name_problems(wanted.tls.secret_name, f"{path}.tls.secretName", "a Secret")
    yield from label_problems(wanted.labels, f"{path}.labels")
    yield from annotation_problems(wanted.annotations, f"{path}.annotations")


def host_problems(wanted: IngressSpec, path: str) -> Iterator[Problem]:
    """One problem if prefix, host and suffix do not add up to a host name."""
    host = f"{wanted.host_prefix or ''}{wanted.host}.{wanted.host_suffix or 'local'}"
    if not is_subdomain(host.removeprefix("*.")):
        yield Problem(path, f'invalid host name "{host}"')


def _claim_problems(
    spec: DynamoComponentDeploymentSpec, pod: Fields, path: str
) -> Iterator[Problem]:
    """Report resource claims of the container that the pod lacks."""
    known = {claim.get("name") for claim in pod.get("resourceClaims") or ()}
    resources = (pod.get("mainContainer") or {}).get("resources") or {}
    places = {
        f"{path}.resources": spec.resources.claims if spec.resources else (),
        f"{path}.extraPodSpec.mainContainer.resources": resources.get("claims") or (),
    }
    for place, claims in places.items():
        for index, claim in enumerate(claims):
            name = claim.get("name")
            if not name or name not in known:
                message = f'"{name or ""}" not found in extraPodSpec.resourceClaims'
                yield Problem(f"{place}.claims[{index}].name", message)
