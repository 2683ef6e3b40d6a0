"""The operator's own user name: reviews contain exactly this one."""

import base64
import binascii
from typing import Final

import msgspec

from kube_runtime.client.client import Client
from kube_runtime.types.kinds import SelfSubjectReview
from kube_runtime.types.meta import from_json
from kube_runtime.wire import UNREADABLE

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
    review = await client.create(SelfSubjectReview, SelfSubjectReview.KIND.manifest({"name": ""}))
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
