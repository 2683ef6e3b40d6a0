"""The offline check accepts and refuses the documents of the cluster tests as the API server does."""

import pytest

from cluster.api import documents, statuses
from dynamo_graphs.schema import schema_problems, status_problems


@pytest.mark.parametrize("name", documents.GOOD)
def test_a_good_document_has_no_problem(name: str) -> None:
    assert () == schema_problems(documents.GOOD[name])


@pytest.mark.parametrize("name", documents.BAD)
def test_a_bad_document_has_a_problem_at_each_wrong_field(name: str) -> None:
    document, paths = documents.BAD[name]
    assert paths == {problem.path for problem in schema_problems(document)}


@pytest.mark.parametrize("name", statuses.GOOD)
def test_a_good_status_has_no_problem(name: str) -> None:
    owner, status = statuses.GOOD[name]
    assert () == status_problems(statuses.TYPES[owner["kind"]], status)


@pytest.mark.parametrize("name", statuses.BAD)
def test_a_bad_status_has_a_problem_inside_the_status(name: str) -> None:
    owner, status = statuses.BAD[name]
    problems = status_problems(statuses.TYPES[owner["kind"]], status)
    assert problems
    assert all(problem.path.startswith("status.") for problem in problems)
