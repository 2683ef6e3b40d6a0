"""Asks registries for images, a few at a time, and never in a way that a tenant could use.

The administrator's registry gets the administrator's login. A tenant names any other: that one gets no
login, and must not be an address of this machine, its link or its metadata service.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from dynamo_legacy.build.image import Reference
from dynamo_legacy.build.plan import Probe
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.legacy.registry import Login, Registry, registry_session
from kube_runtime.controller.places import worker_slot_released

_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class RegistryProbe:
    """Asks whether images exist."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def asked(
        self, reference: Reference, settings: LegacySettings, *, is_insecure: bool, is_own: bool
    ) -> Probe:
        """What the registry says of an image; an error is part of the answer."""
        login = None
        if settings.registry_username and not is_own:
            login = Login(settings.registry_username, settings.registry_password.reveal())
        with worker_slot_released():
            async with self.places, registry_session(only_outside=is_own) as session:
                return await Registry(session, reference, is_insecure, login).probe()
