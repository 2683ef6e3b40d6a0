"""Who somebody is, and what he may do: questions to the API server, created and never stored."""

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource, Struct


class TokenUser(Struct):
    """Whom a token belongs to."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Struct):
    """The answer."""

    authenticated: bool = False
    user: TokenUser = TokenUser()


class TokenReview(Resource):
    """Asks whose token that is. The API server sends the token back; it is not decoded."""

    KIND = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)

    status: TokenReviewStatus = TokenReviewStatus()


class AccessStatus(Struct):
    """The answer."""

    allowed: bool = False


class AccessReview(Resource):
    """Asks whether somebody may do something."""

    KIND = Kind(
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        namespaced=False,
    )

    status: AccessStatus = AccessStatus()
