package io.statecast.spark.sink;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KafkaPartitionTest {
  private final KafkaPartition partition = new KafkaPartition();

  /** Checks against murmur2 of the key as Kafka's own UtilsTest lists it, made positive, modulo the partitions. */
  @ParameterizedTest
  @CsvSource({"21, -973932308", "foobar, -790332482", "a-little-bit-long-string, -985981536", "abc, 479470107"})
  void itIsThatOfKafkasOwnProducer(String key, int murmur2) {
    assertEquals((murmur2 & 0x7fffffff) % 4, partition.call(key.getBytes(UTF_8), 4));
    assertEquals((murmur2 & 0x7fffffff) % 7, partition.call(key.getBytes(UTF_8), 7));
  }
}
