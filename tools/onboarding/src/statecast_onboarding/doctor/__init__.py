"""The checks of `statecast doctor`: team files, database, connector and Kafka, each in a module of its own."""
