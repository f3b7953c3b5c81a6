package io.statecast.spark.sink;

import java.io.Serializable;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Computes the partition of a key as Kafka's own producer does: `kafka_partition(bytes, n) → int`, one of n. */
public final class KafkaPartition implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Called by Spark's generated code. */
  public int call(byte[] key, int partitions) {
    return BuiltInPartitioner.partitionForKey(key, partitions);
  }
}
