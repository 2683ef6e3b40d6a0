"""DynamoModel: LoRAs in the pods of a base model."""
