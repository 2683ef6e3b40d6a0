"""A controller runtime for Kubernetes on asyncio: client, watch, cache, queue, controllers."""
