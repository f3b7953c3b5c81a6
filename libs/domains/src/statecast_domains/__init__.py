"""What a domain's files say: its pipelines and what they keep; without Spark, Kafka or the contract."""
