"""A certificate that is served says when it runs out."""

import math
from datetime import UTC, datetime, timedelta

from kube_runtime.tls import Certificate, new_authority


async def test_when_a_certificate_runs_out_is_known_and_before_there_is_one_it_is_not() -> None:
    kept = Certificate()
    assert math.isnan(kept.expires)
    now, life = datetime(2030, 5, 6, tzinfo=UTC), timedelta(days=90)
    authority = new_authority("a", now=now, life=2 * life)
    await kept.load(authority.issue("s", ["s"], now=now, life=life))
    assert (now + life).timestamp() == kept.expires
