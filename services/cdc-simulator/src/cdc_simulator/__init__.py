"""Databases in miniature that stream their changes into Kafka."""
