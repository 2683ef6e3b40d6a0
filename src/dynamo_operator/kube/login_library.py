"""What we use of the `kubernetes` package. Importing it takes a second: `login` does so only when needed."""

import certifi
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader
from oauthlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from urllib3.exceptions import HTTPError

login_errors = (ConfigException, HTTPError, OAuth2Error, OSError, KeyError, ValueError)
"""How a login may fail; the errors of `requests` are OSErrors."""

__all__ = [
    "ConfigException",
    "ConfigNode",
    "Configuration",
    "ExecProvider",
    "KubeConfigLoader",
    "certifi",
    "login_errors",
]
