package io.statecast.spark;

import java.io.Serializable;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** `kafka_partition(bytes, n) → int`: the partition of n that Kafka's own producer gives to a record with this key. */
public final class KafkaPartition implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Called by Spark's generated code. */
  public int call(byte[] key, int partitions) {
    return BuiltInPartitioner.partitionForKey(key, partitions);
  }
}
