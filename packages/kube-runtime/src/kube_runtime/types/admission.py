"""admissionregistration.k8s.io/v1, and the Secret with a server's certificate."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class WebhookService(Struct):
    """The Service in front of a webhook."""

    namespace: str
    name: str


class WebhookClient(Struct):
    """How the API server calls a webhook, and which authorities it trusts, as PEM in base64."""

    service: WebhookService | None = None
    url: str = ""
    ca_bundle: str = ""


class Webhook(Struct):
    """One entry of a configuration."""

    name: str
    client_config: WebhookClient = WebhookClient()


class ValidatingWebhookConfiguration(Resource):
    """Which requests are shown to whom before they are stored."""

    KIND = Kind(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    )

    webhooks: tuple[Webhook, ...] = ()


class ServingSecret(Resource):
    """The Secret with the certificate of our webhooks. Watched by its name only.

    `data` holds a private key: never log it. The object does not show it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}

    def __repr__(self) -> str:
        """The kind and the name, without the keys."""
        return f"{type(self).__name__}({self.key})"


class MetricsSecret(ServingSecret):
    """The Secret with the certificate of our metrics; a type of its own, since each type has one watch."""
