"""The chassis of every service: settings, logs, TLS, health, metrics server and Kafka options."""
