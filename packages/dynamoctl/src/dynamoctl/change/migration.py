"""`dynamoctl install migrate`: rewrite the objects that are stored in another version than the CRDs say.

For clusters where the operator does not have the permission for that.
"""

import sys

from dynamo_operator.crds import LATER_RESOURCES
from dynamoctl.options import Where
from dynamoctl.target import cluster
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import visible
from kube_runtime.storage import Progress, StorageMigration

_EVERY = 100
"""Objects between two lines of progress."""


async def migrate(where: Where, per_second: float) -> ExitCode:
    """Migrate the kinds with two versions, one after the other; print progress and what is refused.

    Raises: OperatorError.
    """
    code = ExitCode.OK
    async with cluster(where) as at:
        migration = StorageMigration(at.reading.client, per_second)
        due = await migration.due(str(type_.KIND) for type_ in LATER_RESOURCES)
        if not due:
            print("nothing to migrate")
        for definition in due:
            result = await migration.run(definition, _print_progress)
            for error in result.refused:
                print(visible(f"error: {error}"), file=sys.stderr)
            outcome = f"{result.done} of {result.total} objects stored in {result.kind.version}"
            if result.refused:
                code = ExitCode.PROBLEMS
                outcome += f"; the CRD keeps {', '.join(definition.former)}"
            print(f"{result.kind}: {outcome}")
    return code


def _print_progress(progress: Progress) -> None:
    if progress.done % _EVERY == 0 and progress.total > _EVERY:
        print(f"{progress.kind}: {progress.done} of {progress.total}", flush=True)
