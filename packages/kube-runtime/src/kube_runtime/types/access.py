"""Who a user is, and what they may do: reviews by the API server, created and never stored."""

from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Resource, Struct


class UserInfo(Struct):
    """A user, as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Struct):
    """The answer."""

    authenticated: bool = False
    user: UserInfo = UserInfo()


class TokenReview(Resource):
    """Asks whose token that is. The API server sends the token back; it is not decoded."""

    KIND = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)

    status: TokenReviewStatus = TokenReviewStatus()


class UserName(Struct):
    """What the API server calls a user. Nothing else is read, so nothing else can make it unreadable."""

    username: str = ""


class SelfSubjectReviewStatus(Struct):
    """The answer."""

    user_info: UserName = UserName()


class SelfSubjectReview(Resource):
    """Asks who the asker is."""

    KIND = Kind(
        "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
    )

    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()


class AccessReviewStatus(Struct):
    """The answer."""

    allowed: bool = False


class SubjectAccessReview(Resource):
    """Asks whether a user may do something."""

    KIND = Kind(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        namespaced=False,
    )

    status: AccessReviewStatus = AccessReviewStatus()


class SelfSubjectAccessReview(Resource):
    """Asks whether the asker may do something."""

    KIND = Kind(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        namespaced=False,
    )

    status: AccessReviewStatus = AccessReviewStatus()


def question(kind: Kind, spec: Object) -> Object:
    """The review to create."""
    return kind.manifest({"name": ""}, spec=spec)


def subject(user: UserInfo) -> Object:
    """The part of a SubjectAccessReview's spec that says who it is about."""
    return {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
