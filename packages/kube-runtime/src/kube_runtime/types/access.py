"""authentication.k8s.io/v1 and authorization.k8s.io/v1: reviews of users and of their permissions."""

from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Resource, Struct


class UserInfo(Struct):
    """A user."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Struct):
    """The result of a review."""

    authenticated: bool = False
    user: UserInfo = UserInfo()


class TokenReview(Resource):
    """Asks for the user of a token. The API server returns the token, which is not decoded."""

    KIND = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)

    status: TokenReviewStatus = TokenReviewStatus()


class UserName(Struct):
    """The name of a user."""

    username: str = ""


class SelfSubjectReviewStatus(Struct):
    """The result of a review."""

    user_info: UserName = UserName()


class SelfSubjectReview(Resource):
    """Asks for the user of the request itself."""

    KIND = Kind(
        "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
    )

    status: SelfSubjectReviewStatus = SelfSubjectReviewStatus()


class AccessReviewStatus(Struct):
    """The result of a review."""

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
    """Asks whether the user of the request may do something."""

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
    """The user in the spec of a SubjectAccessReview."""
    return {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
