"""What we use of the `kubernetes` package. Importing it takes a second: `login` does so only when needed."""

import json
import subprocess
import sys

import certifi
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader
from oauthlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from urllib3.exceptions import HTTPError

from kube_runtime.kind import Object

login_errors = (ConfigException, HTTPError, OAuth2Error, OSError, KeyError, ValueError)
"""How a login may fail; the errors of `requests` are OSErrors."""

_CONFIG = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for plugins."""


class TimedExecProvider(ExecProvider):
    """Runs a plugin for a limited time: every request waits for it, and one that hangs never ends."""

    def run_within(self, seconds: float, interactive_seconds: float) -> object:
        """The status that the plugin answers. A person at a terminal has longer to log in.

        Raises:
            ConfigException: it failed, took too long, or answered something else.
        """
        is_interactive = sys.stdout.isatty()
        limit = interactive_seconds if is_interactive else seconds
        info = {"apiVersion": self.api_version, "kind": "ExecCredential"}
        spec = {"interactive": is_interactive, **self._cluster()}
        try:
            ended = subprocess.run(  # noqa: S603  # what the user's own kubeconfig names
                self.args,
                stdout=subprocess.PIPE,
                stderr=None if is_interactive else subprocess.PIPE,
                stdin=None if is_interactive else subprocess.DEVNULL,
                cwd=self.cwd,
                env={**self.env, "KUBERNETES_EXEC_INFO": json.dumps({**info, "spec": spec})},
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ConfigException(f"no answer within {limit:g} s, ended") from error
        if ended.returncode:
            message = (ended.stderr or "").strip()
            raise ConfigException(f"process returned {ended.returncode}. {message}".strip())
        return self._status(ended.stdout)

    def _cluster(self) -> Object:
        """The cluster's data for the plugin; the extension that is its own under `config`."""
        if not self.cluster:
            return {}
        cluster = dict(self.cluster.value)
        for extension in cluster.get("extensions") or ():
            if extension["name"] == _CONFIG:
                cluster["config"] = extension["extension"]
        return {"cluster": cluster}

    def _status(self, output: str) -> object:
        try:
            answer = json.loads(output)
        except ValueError as error:
            raise ConfigException(f"failed to decode process output: {error}") from error
        if not isinstance(answer, dict):
            raise ConfigException("expected a JSON object")
        for key in ("apiVersion", "kind", "status"):
            if key not in answer:
                raise ConfigException(f"malformed response. missing key '{key}'")
        if answer["apiVersion"] != self.api_version:
            version = answer["apiVersion"]
            raise ConfigException(f"plugin api version {version} does not match {self.api_version}")
        return answer["status"]


__all__ = [
    "ConfigException",
    "ConfigNode",
    "Configuration",
    "KubeConfigLoader",
    "TimedExecProvider",
    "certifi",
    "login_errors",
]
