"""Check whether the API server trusts the webhooks of our kinds, and until when."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509

from dynamoctl.installation.checks import CheckResult, Finding
from kube_runtime.types.admission import ValidatingWebhookConfiguration, Webhook

AUTHORITIES = "Webhook Authorities"
ADMISSION = "Admission"
_SOON = timedelta(days=7)
_CALLING = "failed calling webhook"
_REFUSED = "denied the request"


def authorities(configurations: Sequence[ValidatingWebhookConfiguration], now: datetime) -> Finding:
    """Whether each of our webhooks has a CA that does not expire soon."""
    ends: list[datetime] = []
    for configuration in configurations:
        for webhook in configuration.webhooks:
            try:
                ends.append(max(_ends(webhook)))
            except ValueError as error:
                name = f"{configuration.metadata.name}/{webhook.name}"
                remedy = "see the log of the operator, or of cert-manager"
                return Finding(AUTHORITIES, CheckResult.FAIL, f"{name} {error}", remedy)
    if not ends:
        return Finding(AUTHORITIES, CheckResult.OK, "no Dynamo webhook is registered")
    first = min(ends)
    text = f"the first expires on {first:%Y-%m-%d}"
    if first - now >= _SOON:
        return Finding(AUTHORITIES, CheckResult.OK, text)
    result = CheckResult.FAIL if first <= now else CheckResult.WARNING
    remedy = "check that the operator that renews it is running"
    return Finding(AUTHORITIES, result, text, remedy)


def _ends(webhook: Webhook) -> Iterable[datetime]:
    """Raises: ValueError with what is wrong."""
    if not webhook.client_config.ca_bundle:
        raise ValueError("has no caBundle")
    try:
        text = base64.b64decode(webhook.client_config.ca_bundle, validate=True)
        return [
            certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(text)
        ]
    except (binascii.Error, ValueError) as error:
        raise ValueError("has a caBundle that is not PEM") from error


def admission(trial: str, *, is_expected: bool) -> Finding:
    """Check a dry run that a webhook should refuse; `trial` is the API server's error, "" if it accepted."""
    if _CALLING in trial:
        remedy = (
            "check that a replica of the operator is ready and that the API server can "
            "reach its Service"
        )
        return Finding(ADMISSION, CheckResult.FAIL, trial, remedy)
    if _REFUSED in trial:
        return Finding(
            ADMISSION, CheckResult.OK, "the API server calls the webhooks and trusts them"
        )
    if trial:
        return Finding(ADMISSION, CheckResult.WARNING, f"the check failed: {trial}")
    if is_expected:
        remedy = "check that the webhook is registered for this namespace"
        return Finding(ADMISSION, CheckResult.FAIL, "no webhook refused an invalid graph", remedy)
    return Finding(ADMISSION, CheckResult.OK, "no webhooks; conditions report errors")
