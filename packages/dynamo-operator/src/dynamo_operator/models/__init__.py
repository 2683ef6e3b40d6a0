"""The controller of DynamoModel, and the LoRA calls to workers."""
