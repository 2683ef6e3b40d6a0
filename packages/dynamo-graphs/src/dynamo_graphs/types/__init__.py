"""Kinds of other projects, as far as the operator reads them."""
