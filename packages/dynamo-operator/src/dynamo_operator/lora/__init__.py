"""DynamoModel: its controller, and the LoRA calls to workers."""
