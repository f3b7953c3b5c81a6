"""What `statecast doctor` looks at: team files, database, connector and Kafka, each in a module of its own."""
