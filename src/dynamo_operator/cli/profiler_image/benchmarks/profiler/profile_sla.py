"""The analytic profiler under the name by which the operator starts every profiler.

The image has this folder's grandparent as its working directory, where `python -m` finds it.
"""

import sys

from dynamo_operator.cli.application import execute
from dynamo_operator.cli.main import app

if __name__ == "__main__":
    execute(app(), ["profiler", *sys.argv[1:]])
