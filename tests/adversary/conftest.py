"""The operators with webhooks of `tests/cluster`, for attacks by a tenant or an outsider."""

from cluster.admission.conftest import account, asker, install

__all__ = ["account", "asker", "install"]
