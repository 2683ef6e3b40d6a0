"""The kinds of the older generation: types, validation, rendering and status, as pure functions."""
