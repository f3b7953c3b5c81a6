"""An order database in miniature that streams its changes into Kafka."""
