"""Kubeconfig files with everything embedded, so that one file can be copied anywhere."""

import base64

import yaml

from devcluster.certificates import Pair


def kubeconfig(*, name: str, server: str, authority: bytes, credential: Pair | str) -> bytes:
    """A kubeconfig file with one context. A `credential` that is a string is a bearer token."""
    user = (
        {"token": credential}
        if isinstance(credential, str)
        else {
            "client-certificate-data": _encoded(credential.certificate),
            "client-key-data": _encoded(credential.key),
        }
    )
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False).encode()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
