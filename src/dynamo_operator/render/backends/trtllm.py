"""TensorRT-LLM. On one node it needs nothing from us; a compilation cache is mounted and found by
its path.
"""

from dynamo_operator.render.backends import noop

container = noop.container
