"""The commands of dynamoctl for Python, with graphs of `dynamo_graphs`."""

from dynamoctl.client.asynchronous import AsyncCluster, Logs, NotReady
from dynamoctl.client.blocking import Cluster

__all__ = ["AsyncCluster", "Cluster", "Logs", "NotReady"]
