"""The operator's own user name: reviews contain exactly this one."""

import asyncio
import base64
import binascii
from typing import Final

import msgspec
import structlog

from kube_runtime.client.client import Client
from kube_runtime.errors import OperatorError
from kube_runtime.types.kinds import SelfSubjectReview
from kube_runtime.types.meta import from_json
from kube_runtime.wire import UNREADABLE

_log = structlog.get_logger(__name__)
_RETRY_SECONDS: Final = 5.0
_QUESTION: Final = SelfSubjectReview.KIND.manifest({"name": ""})
_ACCOUNT: Final = "system:serviceaccount:"
_JWT_PARTS: Final = 3


class _Claims(msgspec.Struct):
    sub: str = ""


# The API server reports the name: reviews contain exactly this one, whatever the ServiceAccount, the
# release or the kind of credentials.
async def own_user(client: Client) -> str:
    """Our user name, from a SelfSubjectReview.

    Raises:
        OperatorError: the request failed.
    """
    review = await client.create(SelfSubjectReview, _QUESTION)
    return review.status.user_info.username


def subject_of(authorization: str) -> str:
    """The user of a ServiceAccount token in an `Authorization` header; "" for any other value.

    The token is our own, so its signature is not verified.
    """
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != _JWT_PARTS:
        return ""
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "==")
        subject = from_json(claims, _Claims).sub
    except (binascii.Error, *UNREADABLE):
        return ""
    return subject if subject.startswith(_ACCOUNT) else ""


def account_of(user: str) -> str:
    """The ServiceAccount of a user name as `NAMESPACE/NAME`; "" for other users."""
    return user.removeprefix(_ACCOUNT).replace(":", "/", 1) if user.startswith(_ACCOUNT) else ""


class OperatorIdentity:
    """Our user name from a SelfSubjectReview; "" until known, which matches no user."""

    def __init__(self, client: Client, user: str = "") -> None:
        self.client = client
        self.user = user

    async def ask(self) -> None:
        """Ask until it is known; log each failure."""
        while not self.user:
            try:
                self.user = await own_user(self.client)
            except OperatorError as error:
                _log.warning("SelfSubjectReview failed", error=str(error))
            if not self.user:
                await asyncio.sleep(_RETRY_SECONDS)
