"""The options of `dynamoctl check`, apart from what it does: they are read before its code is imported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Options:
    """What to check.

    Parameters
    ----------
    kubeconfig
        Kubeconfig file (default: kubectl's).
    context
        Context in the kubeconfig (default: the current one).
    is_before
        Accept missing CRDs, and warn about an operator that already leads.
    is_before_upgrade
        Preview what an upgrade to this version would change (read-only).
    is_self
        Check only what an operator's own ServiceAccount can see, as `helm test` does.
    expects_webhooks
        Fail if no webhook refuses an invalid graph.
    account
        Check the permissions of this operator's ServiceAccount.
    namespace
        Check quota and pull secrets of this namespace; with a restricted operator, the one it watches.
    """

    kubeconfig: Annotated[Path | None, Parameter(metavar="FILE")] = None
    context: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    is_before: Annotated[bool, Parameter(name="--before-install")] = False
    is_before_upgrade: Annotated[bool, Parameter(name="--before-upgrade")] = False
    is_self: Annotated[bool, Parameter(name="--self")] = False
    expects_webhooks: Annotated[bool, Parameter(name="--expect-webhooks")] = False
    account: Annotated[str, Parameter(metavar="NAMESPACE/NAME", show_default=False)] = ""
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = ""


UNLIMITED = Options()
"""Those of a command line that says nothing."""
