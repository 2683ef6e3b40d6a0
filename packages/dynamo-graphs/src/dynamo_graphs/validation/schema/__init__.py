"""The offline check of documents against our schemas."""

from dynamo_graphs.validation.schema.check import closed, schema_problems, status_problems, without

__all__ = ["closed", "schema_problems", "status_problems", "without"]
