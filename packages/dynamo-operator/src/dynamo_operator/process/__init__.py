"""The running process: its start, its informers, controllers and servers, and leader election."""
