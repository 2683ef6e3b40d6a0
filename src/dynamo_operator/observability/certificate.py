"""A certificate made at start, for scrapers that want TLS and do not verify."""

import ssl
from datetime import UTC, datetime, timedelta

from dynamo_operator.kube.serving import new_authority, server_context

_LIFE = timedelta(days=3650)


def self_signed_context() -> ssl.SSLContext:
    """A server's TLS context with a new key and a certificate for `localhost`."""
    now = datetime.now(UTC)
    authority = new_authority("dynamo-operator metrics", now=now, life=_LIFE)
    return server_context(authority.issue("localhost", ["localhost"], now=now, life=_LIFE))
