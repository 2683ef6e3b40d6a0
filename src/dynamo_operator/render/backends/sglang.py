"""SGLang. On one node it needs nothing from us; a cache is found by its path."""

from dynamo_operator.render.backends import noop

container = noop.container
