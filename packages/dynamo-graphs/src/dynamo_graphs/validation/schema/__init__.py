"""The offline check of documents against our schemas."""

from dynamo_graphs.validation import dotted
from dynamo_graphs.validation.schema.check import schema_problems, status_problems, without

__all__ = ["dotted", "schema_problems", "status_problems", "without"]
