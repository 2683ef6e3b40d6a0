"""The operator as it runs in a cluster, but for where it connects when it calls a worker.

`python -m cluster.models.process run …` takes every flag of the operator.
"""

import os
import sys
from functools import partial

from dynamo_operator.process import flags, operator
from dynamo_operator.process.main import signature, start
from kube_runtime.commandline import application, execute
from simulated.lora_fleet import REDIRECT, dial


def run(**arguments: str | None) -> None:
    """Run the operator; its workers are a fleet of the tests."""
    start(arguments, partial(operator.run, dial=partial(dial, os.environ[REDIRECT])))


run.__signature__ = signature()  # type: ignore[attr-defined]


def main() -> None:
    app = application("dynamo-operator")
    app.command(run, name="run")
    execute(app, flags.canonical(sys.argv[1:]))


if __name__ == "__main__":
    main()
