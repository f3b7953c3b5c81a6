"""Pipeline files: their form, their meaning in terms of the contract, and the SQL in them; without Spark or Kafka."""
