"""Who does the work: the election among replicas, and what a replica says of itself while another leads."""

import os

from dynamo_graphs.api import labels
from dynamo_graphs.settings import RenderSettings, Settings
from dynamo_operator.process.informers import unselected
from dynamo_operator.reconcile.transforms import is_controlled_by_us
from kube_runtime.apply.unselected import UnselectedObjects
from kube_runtime.apply.writer import Writer
from kube_runtime.client import in_cluster
from kube_runtime.client.requests import Client
from kube_runtime.controller.manager import Health, Manager
from kube_runtime.coordination.leader_election import Election, Terms
from kube_runtime.coordination.leader_election import identity as candidate
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key


def election(client: Client, settings: Settings, user: str) -> Election | None:
    """The election that this process takes part in. None means: it works without one."""
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


def look_for_unselected(manager: Manager, writer: Writer, settings: RenderSettings) -> None:
    """Look once, when this process begins to lead, for objects of ours that no watch brings."""
    look = UnselectedObjects(writer, selectors=unselected(settings), is_ours=is_controlled_by_us)
    manager.serve(look, while_leading=True)


def leader_health(election: Election) -> Health:
    """Not ready while another installation does the work.

    One that answers reviews stays ready: the API server calls it, and could store nothing otherwise.
    """
    rival = election.rival
    return Health((f"another installation of the operator leads: {rival}",) if rival else ())


def own_namespace(chosen: str, setting: str, flag: str) -> str:
    """The namespace that was chosen, else that of this pod."""
    if chosen:
        return chosen
    if in_cluster.is_in_cluster(os.environ):
        return in_cluster.namespace()
    raise ConfigError(setting, f"is needed outside a pod: {flag}")
