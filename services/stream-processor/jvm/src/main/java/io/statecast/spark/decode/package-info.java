/** Turns records of Kafka, as Protobuf, JSON or Debezium, into rows of Spark; what it cannot read is undecodable. */
package io.statecast.spark.decode;
