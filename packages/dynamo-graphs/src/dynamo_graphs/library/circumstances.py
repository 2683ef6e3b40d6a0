"""The operator and the cluster for which objects are checked and rendered, unless the user names others."""

from dynamo_graphs.facts import Facts
from dynamo_graphs.product import version
from dynamo_graphs.settings import RenderSettings

EVERYTHING_SERVED = Facts(lws_served=True, istio_served=True)
"""A cluster with LeaderWorkerSet and Istio, as `dynamoctl render` takes it without `--orchestrator`."""


def installed_settings() -> RenderSettings:
    """How an operator renders that the charts have installed with their defaults into `dynamo-system`."""
    name = "dynamo-platform-dynamo-operator"
    return RenderSettings(
        mpi_secret_name="mpi-run-ssh-secret",  # noqa: S106  a name
        mpi_secret_namespace="dynamo-system",  # noqa: S106  a name
        mpi_secret_made=True,
        grove_termination_delay_seconds=14_400,
        allowed_gateways="*",
        planner_cluster_role_name=f"{name}-planner",
        epp_cluster_role_name=f"{name}-epp",
        dgdr_profiling_cluster_role_name=f"{name}-dgdr-profiling",
        dgdr_profiling_nodes_cluster_role_name=f"{name}-dgdr-profiling-nodes",
        operator_image=f"dynamo-operator:{version()}",
        disruption_budget_max_unavailable="1",
        operator_account=f"dynamo-system/{name}-controller-manager",
    )
