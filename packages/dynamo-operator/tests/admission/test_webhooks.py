"""What a restricted operator has to do with webhooks, and what not."""

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from dynamo_operator.admission.decide import RULES, OperatorIdentity, account_of, request_in
from dynamo_operator.admission.server import WebhookServer
from dynamo_operator.admission.webhooks import webhooks
from dynamo_operator.settings import RenderSettings, Settings, WebhookSettings
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import ConfigError
from reviews.asking import review
from reviews.rows import with_service
from simulated.server import Server

BAD = with_service(ingress={"enabled": True})


def server(**chosen: str) -> WebhookServer:
    settings = Settings(
        render=RenderSettings(restricted_namespace=chosen.pop("restricted", "")),
        webhooks=msgspec.convert(chosen, WebhookSettings),
    )
    return webhooks(
        OperatorIdentity(Client(Server()), "us"),
        Cache(),
        CollectorRegistry(),
        ("127.0.0.1", 0),
        "dyn",
        settings,
        is_excluded=lambda _: False,
    ).server


def is_allowed(of: WebhookServer, namespace: str) -> bool:
    request = request_in(review(BAD, namespace=namespace))
    return of.decisions.decide(RULES[0], request).allowed


def test_a_restricted_operator_judges_no_foreign_namespace() -> None:
    restricted = server(restricted="team", certificates="external")
    assert is_allowed(restricted, "lab")
    assert not is_allowed(restricted, "team")


def test_a_cluster_wide_operator_judges_all() -> None:
    assert not is_allowed(server(), "lab")


def test_a_restricted_operator_does_not_start_with_certificates_of_its_own() -> None:
    with pytest.raises(ConfigError, match="may not write the caBundle"):
        server(restricted="team")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("system:serviceaccount:dyn:operator", "dyn/operator"),
        ("kubernetes-admin", ""),
        ("", ""),
    ],
)
def test_an_account_is_told_by_the_users_name(user: str, expected: str) -> None:
    assert expected == account_of(user)
