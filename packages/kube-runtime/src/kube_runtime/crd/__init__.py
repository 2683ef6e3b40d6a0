"""From a struct to a CustomResourceDefinition."""
