"""What talks to a cluster from Python; `dynamo_graphs` exports the same."""

from dynamo_graphs import AsyncCluster, Cluster, Logs, NotReady

__all__ = ["AsyncCluster", "Cluster", "Logs", "NotReady"]
