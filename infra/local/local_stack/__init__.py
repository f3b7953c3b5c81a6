"""The whole of Statecast as plain processes on one machine: real broker, real Spark, all services, a gateway."""
