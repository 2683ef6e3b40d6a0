"""Leader election among replicas, and the readiness of a replica that does not lead."""

import os

from dynamo_graphs.api import labels
from dynamo_graphs.settings import Settings
from kube_runtime.client import in_cluster
from kube_runtime.client.requests import Client
from kube_runtime.controller.manager import Health
from kube_runtime.coordination.leader_election import Election, Terms
from kube_runtime.coordination.leader_election import identity as candidate
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key


def election(client: Client, settings: Settings, user: str) -> Election | None:
    """The election that this process takes part in; None if leader election is off."""
    chosen = settings.leader_election
    if not chosen.enabled:
        return None
    namespace = own_namespace(
        chosen.namespace, "leaderElection.namespace", "--leader-election-namespace"
    )
    return Election(
        client,
        Key(namespace, chosen.id),
        identity=candidate(),
        mark=(labels.INSTALLATION, user) if user else None,
        terms=Terms(
            lease_seconds=int(chosen.lease_duration_seconds),
            deadline_seconds=chosen.renew_deadline_seconds,
            retry_seconds=chosen.retry_period_seconds,
        ),
    )


def leader_health(election: Election) -> Health:
    """Not ready while another installation leads.

    Not used with webhooks: the API server calls them, and stores nothing without them.
    """
    rival = election.rival
    return Health((f"another installation of the operator leads: {rival}",) if rival else ())


def own_namespace(chosen: str, setting: str, flag: str) -> str:
    """The configured namespace, else that of this pod.

    Raises: ConfigError outside a pod.
    """
    if chosen:
        return chosen
    if in_cluster.is_in_cluster(os.environ):
        return in_cluster.namespace()
    raise ConfigError(setting, f"is needed outside a pod: {flag}")
