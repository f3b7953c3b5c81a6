"""What every service does in the same way: settings, logs, TLS, health, metrics server and Kafka options."""
