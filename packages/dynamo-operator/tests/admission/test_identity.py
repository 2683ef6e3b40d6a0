"""The operator's own user, from its token, and the ServiceAccount in a user's name."""

import pytest

from dynamo_operator.admission.identity import account_of, subject_of
from reviews.asking import token

ACCOUNT = "system:serviceaccount:dyn:operator"


def test_a_token_names_its_service_account_only() -> None:
    assert ACCOUNT == subject_of(token(sub=ACCOUNT))
    for header in ("", token(), token(sub=7), token(sub="kubernetes-admin"), "Bearer a.!.c"):
        assert not subject_of(header)


@pytest.mark.parametrize(
    ("user", "expected"),
    [("system:serviceaccount:dyn:operator", "dyn/operator"), ("kubernetes-admin", ""), ("", "")],
)
def test_a_service_account_is_read_from_the_user_name(user: str, expected: str) -> None:
    assert expected == account_of(user)
