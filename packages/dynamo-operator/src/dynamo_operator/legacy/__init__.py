"""Controllers of the older generation. Imported only with `--enable-legacy-kinds`."""
