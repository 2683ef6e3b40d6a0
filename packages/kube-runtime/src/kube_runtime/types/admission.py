"""admissionregistration.k8s.io/v1: ValidatingWebhookConfiguration."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class WebhookService(Struct):
    """The Service in front of a webhook."""

    namespace: str
    name: str


class WebhookClient(Struct):
    """How the API server calls a webhook, and the CAs that it trusts, as PEM in base64."""

    service: WebhookService | None = None
    url: str = ""
    ca_bundle: str = ""


class Webhook(Struct):
    """One webhook of a configuration."""

    name: str
    client_config: WebhookClient = WebhookClient()


class ValidatingWebhookConfiguration(Resource):
    """The validating webhooks for requests before they are stored."""

    KIND = Kind(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    )

    webhooks: tuple[Webhook, ...] = ()
