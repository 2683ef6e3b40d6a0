"""How commands reach an instance's API server: kubeconfig files, kubectl, and probes without credentials."""

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path

import yaml

from devcluster.certificates import Pair
from devcluster.layout import LOOPBACK
from devcluster.processes import completed
from kube_runtime.errors import OperatorError

_PROBE_TIMEOUT_SECONDS = 5.0


class KubectlError(OperatorError):
    """kubectl failed; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with the credentials of one kubeconfig file."""

    program: Path
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run kubectl and return what it prints.

        Raises: KubectlError.
        """
        flags = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}")
        result = completed([self.program, *flags, *arguments], stdin=stdin)
        if result.returncode:
            message = " ".join(result.stderr.split()) or f"exit code {result.returncode}"
            raise KubectlError(f"kubectl {arguments[0]}: {message}")
        return result.stdout

    def apply(self, *files: Path) -> None:
        """Apply the objects in these files with server-side apply."""
        if files:
            self("apply", "--server-side", "--force-conflicts", *(f"--filename={f}" for f in files))


def kubeconfig(*, name: str, server: str, authority: bytes, credential: Pair | str) -> bytes:
    """A kubeconfig file with one context and everything embedded, so that it can be copied anywhere.

    A `credential` that is a string is a bearer token.
    """
    user = (
        {"token": credential}
        if isinstance(credential, str)
        else {
            "client-certificate-data": _base64(credential.certificate),
            "client-key-data": _base64(credential.key),
        }
    )
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False).encode()


def is_ready(port: int, authority: Path) -> bool:
    """Whether the API server on this port reports that it is ready."""
    return _get(port, authority, "/readyz") is not None


def server_version(port: int, authority: Path) -> str | None:
    """The version of the API server on this port, or None if it does not answer."""
    body = _get(port, authority, "/version")
    return None if body is None else str(json.loads(body)["gitVersion"])


def _get(port: int, authority: Path, path: str) -> bytes | None:
    """The body of a path that is open to clients without credentials, or None without a successful answer."""
    try:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            LOOPBACK, port, timeout=_PROBE_TIMEOUT_SECONDS, context=context
        )
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return None
    return body if response.status == http.client.OK else None


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
