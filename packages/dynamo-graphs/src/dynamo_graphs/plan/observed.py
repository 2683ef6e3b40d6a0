"""A service as it runs now: the input of all decisions about its next step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ServiceObserved:
    """What the API server holds of a service's workload.

    `exists` is whether there is one. `restart` is the id of the restart that its newest template carries,
    "" for none. `is_ready` is whether it runs that template only, in the desired number. `desired`
    is the number of replicas that it asks for, `replicas` how many exist, `ready` how many serve.
    `is_paused` is whether its component is paused, so that nothing is done for it.
    `is_current` is whether these counts are about the newest spec: until its controllers have seen that, a
    workload with 0 replicas may be about to have some.
    """

    exists: bool = False
    restart: str = ""
    is_ready: bool = False
    desired: int = 0
    replicas: int = 0
    ready: int = 0
    is_paused: bool = False
    is_current: bool = True


Observed: TypeAlias = Mapping[str, ServiceObserved]
"""By the keys of the services; a service without a workload may be missing."""
