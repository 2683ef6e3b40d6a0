"""Every row of the rule tables, in the process."""

import pytest

from dynamo_operator.graph.warnings import ClusterContext
from reviews.asking import SETTINGS, verdict
from reviews.rows import ROWS, Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_judged_in_these_words(row: Row) -> None:
    restricted = "lab" if row.restricted else ""
    settings = type(SETTINGS)(epp_cluster_role_name="epp", restricted_namespace=restricted)
    around = ClusterContext(pools_served=row.pools_served)
    found = verdict(row.new, row.old, user=row.user, settings=settings, cluster=around)
    assert row.refused == "\n".join(map(str, found.problems))
    assert row.warnings == found.warnings
