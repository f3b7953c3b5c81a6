/** Reads Kafka for queries in real-time mode: several partitions in a task, and batches that end when told. */
package io.statecast.spark.source;
