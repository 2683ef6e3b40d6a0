"""Graphs of `dynamo_graphs` in a cluster: what the commands do, for Python."""

from dynamoctl.client.asynchronous import AsyncCluster, Logs, NotReady
from dynamoctl.client.blocking import Cluster

__all__ = ["AsyncCluster", "Cluster", "Logs", "NotReady"]
