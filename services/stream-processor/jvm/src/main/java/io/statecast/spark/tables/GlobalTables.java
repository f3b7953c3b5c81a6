package io.statecast.spark.tables;

import io.statecast.spark.decode.MessageType;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Holds the keyed topics that this JVM follows as tables, with one Kafka consumer each; all queries share them. */
public final class GlobalTables {
  private static final Map<Name, TableFollower> FOLLOWED = new ConcurrentHashMap<>();

  private GlobalTables() {}

  /**
   * Returns the table of the rows in a topic's StateRecords; follows it from the first call on.
   *
   * <p>A contract with more fields gives another type, and queries of it rows of their own; the earlier ones end with the
   * process.
   */
  static TableFollower of(Map<String, String> kafka, String topic, MessageType record, MessageType row) {
    return FOLLOWED.compute(
        new Name(kafka, topic, row),
        (name, known) -> known == null || known.ended() ? follow(name, new TableRows(record, row)) : known);
  }

  /** Stops following all tables. */
  public static void closeAll() {
    FOLLOWED.values().forEach(TableFollower::close);
    FOLLOWED.clear();
  }

  private static TableFollower follow(Name name, TableRows rows) {
    // By the time of day, a step back by an hour would put off the next look at the topic's end for as long.
    InstantSource passed = () -> Instant.EPOCH.plusNanos(System.nanoTime());
    TableFollower follower =
        new TableFollower(name.topic(), rows, () -> new KafkaConsumer<>(configuration(name)), passed);
    Thread thread = new Thread(follower, "table-" + name.topic());
    thread.setDaemon(true);
    thread.start();
    return follower;
  }

  private static Map<String, Object> configuration(Name name) {
    Map<String, Object> configuration = new HashMap<>(name.kafka());
    configuration.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    configuration.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    configuration.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    configuration.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
    configuration.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
    configuration.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
    return configuration;
  }

  private record Name(Map<String, String> kafka, String topic, MessageType row) {}
}
