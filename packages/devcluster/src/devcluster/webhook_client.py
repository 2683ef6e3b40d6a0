"""The client certificate that the API server presents to admission webhooks.

Without it no webhook can distinguish the API server from a pod. Its CA signs nothing else, as
`docs/admission.md` recommends.
"""

import json

from devcluster.certificates import new_authority, write_private
from devcluster.layout import Layout

CLIENT_NAME = "kube-apiserver"
"""The common name of the certificate."""
_CA, _CLIENT, _CONFIGURATION = "webhook-clients-ca", "webhook-client", "admission.json"


def write_webhook_client(layout: Layout) -> None:
    """Writes the CA, the certificate and the configuration of the API server that names it."""
    authority = new_authority("dynamo-operator webhook clients")
    authority.pair.write(layout.pki, _CA)
    authority.issue(CLIENT_NAME).write(layout.pki, _CLIENT)
    files = {
        "client-certificate": str(layout.pki / f"{_CLIENT}.crt"),
        "client-key": str(layout.pki / f"{_CLIENT}.key"),
    }
    users = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": "*", "user": files}],  # for the webhooks of every host
    }
    kubeconfig = layout.kubeconfigs / "webhooks.yaml"
    write_private(kubeconfig, json.dumps(users).encode())
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(kubeconfig),
    }
    content = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ValidatingAdmissionWebhook", "configuration": plugin}],
    }
    write_private(layout.pki / _CONFIGURATION, json.dumps(content).encode())


def webhook_client_flags(layout: Layout) -> list[str]:
    """Arguments of kube-apiserver; none for an instance from before there was such a certificate."""
    file = layout.pki / _CONFIGURATION
    return [f"--admission-control-config-file={file}"] if file.is_file() else []
