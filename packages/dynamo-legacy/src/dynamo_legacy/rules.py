"""What today's rules say of a DynamoNimDeployment: those for components, on the component that it becomes."""

from collections.abc import Iterator
from itertools import chain

import msgspec

from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, first_problems
from dynamo_graphs.validation.component import component_problems
from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.graph_config import GraphConfig
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import as_component, http_port
from kube_runtime.kind import Object

_SOME_IMAGE = DynamoNimSpec(image="image")
"""No rule depends on the image."""
_EXAMPLES = {"mountPoint": "/data", "size": "10Gi", "volumeAccessMode": "ReadWriteOnce"}


def component_rules(
    nim: DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings
) -> tuple[Problem, ...]:
    """Problems that would keep the component from being rendered or from being accepted, sorted by path."""
    component = as_component(nim, _SOME_IMAGE, settings, legacy)
    found = component_problems(component, settings)
    return first_problems(chain(found, _port_problems(nim), _claim_problems(nim)), MOST_PROBLEMS)


def shared_size_problem(
    deployment: DynamoDeployment, graph: GraphConfig, settings: RenderSettings
) -> str:
    """That the variables of all services are too large together, as each component has them; "" if not."""
    most, services = settings.largest_object_bytes, len(graph.services)
    size = len(msgspec.json.encode(deployment.spec.envs)) if deployment.spec.envs else 0
    if not most or size * services <= most:
        return ""
    total = size * services
    return f"spec.envs: {size} bytes for each of {services} services make {total} (limit {most})"


def _port_problems(nim: DynamoNimDeployment) -> Iterator[Problem]:
    for index, each in enumerate(nim.spec.envs):
        if each.get("name") == "PORT" and each.get("value") and http_port((each,)) is None:
            message = f'invalid port "{each["value"]}" (expected a number from 1 to 65535)'
            yield Problem(f"spec.envs[{index}].value", message)


def _claim_problems(nim: DynamoNimDeployment) -> Iterator[Problem]:
    wanted = nim.spec.pvc
    if wanted is None:
        return
    needed: Object = {"mountPoint": wanted.mount_point}
    if wanted.create:
        needed |= {"size": wanted.size, "volumeAccessMode": wanted.volume_access_mode}
    for field, value in needed.items():
        if not value:
            message = f"missing {field} (for example {_EXAMPLES[field]})"
            yield Problem(f"spec.pvc.{field}", message, ProblemKind.REQUIRED)
