"""An API server without a network, on a clock that jumps to the next thing that happens."""
