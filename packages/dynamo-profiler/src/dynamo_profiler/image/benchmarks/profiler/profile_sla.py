"""The analytic profiler under the name by which the operator starts every profiler.

The image has this folder's grandparent as its working directory, where `python -m` finds it.
"""

from dynamo_profiler.main import main

if __name__ == "__main__":
    main()
