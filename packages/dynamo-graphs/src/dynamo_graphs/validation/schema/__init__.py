"""The offline check of documents against our schemas."""

from dynamo_graphs.validation.paths import dotted
from dynamo_graphs.validation.schema.check import schema_problems, status_problems
from dynamo_graphs.validation.schema.sound import without

__all__ = ["dotted", "schema_problems", "status_problems", "without"]
