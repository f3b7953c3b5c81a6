package io.statecast.spark;

import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.spark.sql.api.java.UDF2;

/** `kafka_partition(bytes, n) → int`: the partition of n that Kafka's own producer gives to a record with this key. */
public final class KafkaPartition implements UDF2<byte[], Integer, Integer> {
  private static final long serialVersionUID = 1L;

  @Override
  public Integer call(byte[] key, Integer partitions) {
    return key == null ? null : BuiltInPartitioner.partitionForKey(key, partitions);
  }
}
