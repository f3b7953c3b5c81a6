package io.statecast.spark.tables;

import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows a keyed topic from its beginning, in a thread of its own, and answers from the rows that it has read.
 *
 * <p>While the broker is away, it still answers, and says how old the answers may be.
 */
final class TableFollower implements Runnable, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TableFollower.class);
  private static final Duration POLL = Duration.ofMillis(100);
  private static final Duration PATIENCE = Duration.ofSeconds(1);
  private static final Duration FIRST_READ = Duration.ofSeconds(60);
  private static final long ASK_MILLIS = 1_000;
  private static final long WARN_MILLIS = 10_000;

  private final String topic;
  private final TableRows rows;
  private final Supplier<Consumer<byte[], byte[]>> connect;
  private final InstantSource clock;
  private final CountDownLatch read = new CountDownLatch(1);
  private volatile Consumer<byte[], byte[]> consumer;
  private volatile RuntimeException failure;
  private volatile boolean closing;
  private volatile long current;
  private Map<TopicPartition, Long> ends;
  private long asked;
  private long warned;

  TableFollower(String topic, TableRows rows, Supplier<Consumer<byte[], byte[]>> connect, InstantSource clock) {
    this.topic = topic;
    this.rows = rows;
    this.connect = connect;
    this.clock = clock;
    this.current = clock.millis();
    this.asked = current - ASK_MILLIS;
    this.warned = current - WARN_MILLIS;
  }

  /**
   * Returns the row of the key; null if it has none. Blocks until the topic has been read to its end once.
   *
   * @throws IllegalStateException if that takes more than a minute, or if the topic cannot be followed
   */
  InternalRow get(String key) throws InterruptedException {
    if (!read.await(FIRST_READ.toMillis(), TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException("the table %s was not read within %s; is Kafka there?".formatted(topic, FIRST_READ));
    }
    if (failure != null) {
      throw new IllegalStateException("the table %s is not followed: %s".formatted(topic, failure.getMessage()), failure);
    }
    return rows.get(key);
  }

  /** Returns how old the answers may be: the time since the end that was last reached was the topic's end. */
  long ageMillis() {
    return clock.millis() - current;
  }

  /** Returns whether it no longer follows the topic. */
  boolean ended() {
    return closing || failure != null;
  }

  @Override
  public void close() {
    closing = true;
    Consumer<byte[], byte[]> open = consumer;
    if (open != null) {
      open.wakeup();
    }
  }

  @Override
  public void run() {
    try (Consumer<byte[], byte[]> opened = connect.get()) {
      consumer = opened;
      List<TopicPartition> partitions = partitions(opened);
      opened.assign(partitions);
      opened.seekToBeginning(partitions);
      while (!closing) {
        opened.poll(POLL).forEach(rows::apply);
        keepTime(opened);
      }
    } catch (WakeupException e) {
      LOG.debug("closed {}", topic);
    } catch (RuntimeException e) {
      LOG.error("the table {} is not followed any more", topic, e);
      failure = e;
    } finally {
      failure = failure == null ? new IllegalStateException("closed") : failure;
      read.countDown();
    }
  }

  private List<TopicPartition> partitions(Consumer<byte[], byte[]> opened) {
    List<PartitionInfo> partitions = null;
    while (partitions == null && !closing) {
      try {
        partitions = Objects.requireNonNullElse(opened.partitionsFor(topic, PATIENCE), List.of());
      } catch (TimeoutException e) {
        warnIfOld();
      }
    }
    if (closing) {
      throw new WakeupException();
    }
    if (partitions.isEmpty()) {
      throw new IllegalStateException("no topic %s; create it before the pipelines that join it".formatted(topic));
    }
    return partitions.stream().map(each -> new TopicPartition(topic, each.partition())).toList();
  }

  /** Asks for the topic's end from time to time, and notes when it has read as far. */
  private void keepTime(Consumer<byte[], byte[]> opened) {
    try {
      if (ends == null && clock.millis() - asked >= ASK_MILLIS) {
        long now = clock.millis();
        ends = opened.endOffsets(opened.assignment(), PATIENCE);
        asked = now;
      }
      if (ends != null && ends.entrySet().stream().allMatch(end -> opened.position(end.getKey(), PATIENCE) >= end.getValue())) {
        current = asked;
        ends = null;
        read.countDown();
      }
    } catch (TimeoutException e) {
      LOG.debug("no answer on {}", topic, e);
    }
    warnIfOld();
  }

  private void warnIfOld() {
    long now = clock.millis();
    if (now - current >= WARN_MILLIS && now - warned >= WARN_MILLIS) {
      LOG.warn("the table {} may be {} s old: Kafka does not answer, or changes faster than it is read", topic, ageMillis() / 1000);
      warned = now;
    }
  }
}
