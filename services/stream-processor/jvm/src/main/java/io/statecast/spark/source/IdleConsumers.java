package io.statecast.spark.source;

import java.time.Duration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Keeps consumers between two batches of their queries: a new one would have to connect and ask for metadata first. */
final class IdleConsumers {
  /** Longer than a query takes to plan its next batch: the query of a consumer that is idle for so long has ended. */
  private static final long MAX_IDLE_NS = Duration.ofMinutes(1).toNanos();

  private static final Map<Key, Idle> IDLE = new HashMap<>();

  private IdleConsumers() {}

  /** A query's run, which has a consumer group of its own that nobody joins, and the partitions of one task. */
  record Key(Object group, Set<TopicPartition> partitions) {
    static Key of(Map<String, Object> settings, Set<TopicPartition> partitions) {
      return new Key(settings.get(ConsumerConfig.GROUP_ID_CONFIG), Set.copyOf(partitions));
    }
  }

  private record Idle(KafkaConsumer<byte[], byte[]> consumer, long sinceNs) {}

  /** Returns the idle consumer of the key, else a new one with these settings; its partitions are assigned. */
  static KafkaConsumer<byte[], byte[]> take(Key key, Map<String, Object> settings) {
    Idle idle;
    synchronized (IDLE) {
      idle = IDLE.remove(key);
    }
    if (idle != null) {
      return idle.consumer();
    }
    KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
    consumer.assign(key.partitions());
    return consumer;
  }

  /** Keeps the consumer until it is taken, and ends those that nobody has taken for long. */
  static void put(Key key, KafkaConsumer<byte[], byte[]> consumer) {
    long now = System.nanoTime();
    synchronized (IDLE) {
      Idle before = IDLE.put(key, new Idle(consumer, now));
      if (before != null) {
        end(before.consumer());
      }
      for (Iterator<Idle> each = IDLE.values().iterator(); each.hasNext(); ) {
        Idle idle = each.next();
        if (now - idle.sinceNs() > MAX_IDLE_NS) {
          each.remove();
          end(idle.consumer());
        }
      }
    }
  }

  /** Ends the consumer without waiting, even on an interrupted thread. */
  static void end(KafkaConsumer<byte[], byte[]> consumer) {
    boolean interrupted = Thread.interrupted();
    try {
      consumer.close(Duration.ZERO);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
