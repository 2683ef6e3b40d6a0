"""The command line of `dynamo-operator`: flags, settings file, environment."""
