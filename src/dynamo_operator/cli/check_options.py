"""The options of `dynamoctl check`, apart from what it does: they are read before its code is imported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Options:
    """What to look at.

    Parameters
    ----------
    kubeconfig
        Kubeconfig file. Without it, the one that kubectl takes.
    context
        Context in it.
    is_before
        It is no fault that our kinds are not there yet; an operator that leads already is one.
    is_before_upgrade
        Try, without changing anything, what an upgrade to this version would change.
    is_self
        Look only at what an operator's account can say of itself, as `helm test` does.
    expects_webhooks
        It is a fault if nobody refuses a graph with a mistake.
    account
        ServiceAccount of an operator, whose permissions are looked at.
    namespace
        Namespace to look at: its quota and pull secrets; that of an operator, if it works in one only.
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
