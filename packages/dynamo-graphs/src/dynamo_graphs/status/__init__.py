"""The status of each kind, its Events, and the meanings of reasons. Pure functions of live objects."""
