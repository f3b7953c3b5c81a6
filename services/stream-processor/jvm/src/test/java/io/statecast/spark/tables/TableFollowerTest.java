package io.statecast.spark.tables;

import static io.statecast.spark.tables.TestTable.TOPIC;
import static io.statecast.spark.tables.TestTable.row;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.statecast.spark.decode.TestRows;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TableFollowerTest {
  private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);

  /** Begins anywhere, like a clock that nobody sets. */
  private final AtomicReference<Instant> now = new AtomicReference<>(Instant.ofEpochSecond(-1_000));
  private final Broker broker = new Broker();
  private final TableFollower follower =
      new TableFollower(TOPIC, TestTable.rows(), () -> broker, now::get);
  private final Thread thread = new Thread(follower);

  /** Plays Kafka with its own mock consumer; while `away`, it does not say where the topic ends. */
  private static final class Broker extends MockConsumer<byte[], byte[]> {
    private volatile boolean away;

    Broker() {
      super(OffsetResetStrategy.EARLIEST);
      updatePartitions(TOPIC, List.of(new PartitionInfo(TOPIC, 0, null, null, null)));
      updateBeginningOffsets(Map.of(PARTITION, 0L));
      updateEndOffsets(Map.of(PARTITION, 0L));
    }

    @Override
    public Map<TopicPartition, Long> endOffsets(java.util.Collection<TopicPartition> partitions, Duration timeout) {
      if (away) {
        throw new TimeoutException("away");
      }
      return super.endOffsets(partitions, timeout);
    }
  }

  private static void await(BooleanSupplier condition) {
    assertTimeoutPreemptively(
        Duration.ofSeconds(30),
        () -> {
          while (!condition.getAsBoolean()) {
            Thread.sleep(5);
          }
        });
  }

  private Object read(String key) {
    try {
      return follower.get(key);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @AfterEach
  void end() throws InterruptedException {
    follower.close();
    thread.join(10_000);
  }

  @Test
  void theFirstAnswerWaitsUntilTheTopicWasRead() {
    broker.updateEndOffsets(Map.of(PARTITION, 2L));
    broker.schedulePollTask(() -> broker.addRecord(row(0, "a", 1, 1, "one")));
    broker.schedulePollTask(() -> {});
    broker.schedulePollTask(() -> broker.addRecord(row(1, "a", 1, 2, "two")));
    thread.start();

    assertEquals(TestRows.row("two"), read("a"));
  }

  @Test
  void aLaterChangeIsSeen() {
    thread.start();
    assertEquals(null, read("a"));

    broker.schedulePollTask(() -> broker.addRecord(row(0, "a", 1, 1, "one")));

    await(() -> TestRows.row("one").equals(read("a")));
  }

  @Test
  void itAnswersWhileTheBrokerIsAwayAndKnowsItsAge() {
    broker.updateEndOffsets(Map.of(PARTITION, 1L));
    broker.schedulePollTask(() -> broker.addRecord(row(0, "a", 1, 1, "one")));
    thread.start();
    read("a");

    broker.away = true;
    now.updateAndGet(instant -> instant.plusSeconds(30));

    await(() -> follower.ageMillis() >= 30_000);
    assertEquals(TestRows.row("one"), read("a"));

    broker.away = false;

    await(() -> follower.ageMillis() == 0);
  }

  @Test
  void aMissingTopicIsNamed() {
    broker.updatePartitions(TOPIC, List.of());
    thread.start();

    IllegalStateException failure = assertThrows(IllegalStateException.class, () -> read("a"));

    assertTrue(failure.getMessage().contains("no topic " + TOPIC), failure::getMessage);
    assertTrue(follower.ended());
  }

  @Test
  void aClosedTableGivesNoAnswer() throws InterruptedException {
    thread.start();
    read("a");

    follower.close();
    thread.join(10_000);

    assertThrows(IllegalStateException.class, () -> read("a"));
    assertTrue(broker.closed());
  }
}
