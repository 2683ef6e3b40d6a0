"""What the rest of the cluster tells validation and rendering, gathered once per reconcile."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Facts:
    """The cluster as one component or graph sees it.

    `pull_secrets` maps a registry host (with port) to the names of the pull secrets in the object's own
    namespace, sorted. `component_service_account` is the first ServiceAccount there that is labelled
    `nvidia.com/dynamo-component-pod=true`, or "". The three flags tell which optional APIs are served.
    """

    pull_secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    component_service_account: str = ""
    lws_served: bool = False
    grove_served: bool = False
    kai_served: bool = False
