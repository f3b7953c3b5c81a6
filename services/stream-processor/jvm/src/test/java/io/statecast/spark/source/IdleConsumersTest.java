package io.statecast.spark.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.Test;

final class IdleConsumersTest {
  private static final Set<TopicPartition> PARTITIONS = Set.of(new TopicPartition("orders", 0), new TopicPartition("orders", 2));

  private static Map<String, Object> settings(String group) {
    String deserializer = ByteArrayDeserializer.class.getName();
    return Map.of(
        "bootstrap.servers", "127.0.0.1:1", "group.id", group, "key.deserializer", deserializer, "value.deserializer", deserializer);
  }

  private static KafkaConsumer<byte[], byte[]> take(String group) {
    return IdleConsumers.take(IdleConsumers.Key.of(settings(group), PARTITIONS), settings(group));
  }

  @Test
  void aConsumerServesTheNextBatchOfItsQueryAlone() {
    KafkaConsumer<byte[], byte[]> first = take("a");
    assertEquals(PARTITIONS, first.assignment());
    IdleConsumers.put(IdleConsumers.Key.of(settings("a"), PARTITIONS), first);
    KafkaConsumer<byte[], byte[]> other = take("b");
    KafkaConsumer<byte[], byte[]> next = take("a");
    KafkaConsumer<byte[], byte[]> beside = take("a");

    assertSame(first, next);
    assertNotSame(first, other);
    assertNotSame(first, beside);
    for (KafkaConsumer<byte[], byte[]> each : Set.of(next, other, beside)) {
      IdleConsumers.end(each);
    }
  }

  @Test
  void anInterruptedTaskEndsItsConsumerAndStaysInterrupted() {
    KafkaConsumer<byte[], byte[]> consumer = take("c");
    Thread.currentThread().interrupt();
    IdleConsumers.end(consumer);

    assertTrue(Thread.interrupted());
    assertThrows(IllegalStateException.class, () -> consumer.position(new TopicPartition("orders", 0)));
  }
}
