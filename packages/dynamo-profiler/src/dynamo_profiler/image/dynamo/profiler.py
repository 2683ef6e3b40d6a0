"""The analytic profiler under the name by which the operator starts the profiler of a request in v1beta1.

The image has this folder's parent as its working directory, where `python -m` finds it.
"""

from dynamo_profiler.main import main

if __name__ == "__main__":
    main()
