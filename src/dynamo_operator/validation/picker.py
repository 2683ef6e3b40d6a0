"""The rules of an endpoint picker: one pod, one configuration, one per graph.

Source: specification `admission` S8 to S13.
"""

from collections.abc import Iterator

from dynamo_operator.api.component import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation import Problem, ProblemKind
from dynamo_operator.validation.syntax import name_problems

TYPE = "epp"


def picker_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """What is wrong with a component as an endpoint picker, if it is one."""
    if spec.component_type != TYPE:
        return
    if spec.multinode is not None and spec.multinode.node_count > 1:
        message = "an endpoint picker runs on one node"
        yield Problem(f"{path}.multinode.nodeCount", message, ProblemKind.FORBIDDEN)
    if spec.replicas not in (None, 1):
        yield Problem(f"{path}.replicas", "an endpoint picker has exactly 1 replica")
    yield from _config_problems(spec, f"{path}.eppConfig")


def _config_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    config = spec.epp_config
    reference = config.config_map_ref if config else None
    if config is None or (reference is None and config.config is None):
        message = "an endpoint picker needs either configMapRef or config: there is no default"
        yield Problem(path, message, ProblemKind.REQUIRED)
        return
    if reference is None:
        return
    if config.config is not None:
        message = "configMapRef and config exclude each other"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    name, key = reference.get("name"), reference.get("key")
    at = f"{path}.configMapRef"
    if not name:
        yield Problem(f"{at}.name", "a name is required", ProblemKind.REQUIRED)
    elif not isinstance(name, str):
        yield Problem(f"{at}.name", "expected text")
    else:
        yield from name_problems(name, f"{at}.name", "a ConfigMap")
    if key is not None and not isinstance(key, str):
        yield Problem(f"{at}.key", "expected text")


def lone_picker_problems(component: DynamoComponentDeployment) -> Iterator[Problem]:
    """One problem if an endpoint picker has no graph."""
    owners = component.metadata.owner_references
    has_graph = any(owner.kind == DynamoGraphDeployment.KIND.name for owner in owners)
    if component.spec.component_type == TYPE and not has_graph:
        message = "an endpoint picker needs a graph, which has its pool and its configuration"
        yield Problem("spec.componentType", message, ProblemKind.NOT_SUPPORTED)


def graph_picker_problems(
    graph: DynamoGraphDeployment, settings: RenderSettings
) -> Iterator[Problem]:
    """What is wrong with the endpoint pickers of a graph, all together."""
    pickers = sorted(
        key for key, each in graph.spec.services.items() if each.component_type == TYPE
    )
    for key in pickers[1:]:
        message = f'a graph has one endpoint picker, and "{pickers[0]}" is one already'
        yield Problem(f"spec.services.{key}.componentType", message, ProblemKind.DUPLICATE)
    if pickers and not settings.restricted_namespace and not settings.epp_cluster_role_name:
        message = (
            "EPP ClusterRole name is required in cluster-wide mode when EPP service is present: "
            "the operator is started without --epp-cluster-role-name"
        )
        path = f"spec.services.{pickers[0]}.componentType"
        yield Problem(path, message, ProblemKind.NOT_SUPPORTED)
