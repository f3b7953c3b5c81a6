"""Reads a domain's files and derives topics and stores from them; without Spark, Kafka or the contract."""
