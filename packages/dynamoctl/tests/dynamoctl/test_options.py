"""Options that exclude each other are wrong usage."""

import pytest
from cyclopts import CycloptsError

from dynamoctl.inspect.logs import log_query
from dynamoctl.options import LogOptions


@pytest.mark.parametrize("options", [LogOptions(tail=-2), LogOptions(follow=True, previous=True)])
def test_options_that_make_no_sense(options: LogOptions) -> None:
    with pytest.raises(CycloptsError):
        log_query(options)
