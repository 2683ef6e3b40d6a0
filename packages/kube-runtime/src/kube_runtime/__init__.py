"""Talks to the API server: client, watch, cache, queue, controllers. Knows nothing of Dynamo."""
