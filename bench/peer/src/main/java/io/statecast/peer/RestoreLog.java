package io.statecast.peer;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Prints {@code restored PARTITION FROM_MS UNTIL_MS ROWS} for each partition; times are milliseconds since 1970. */
final class RestoreLog implements StateRestoreListener {
  private final Map<TopicPartition, Long> startedMs = new ConcurrentHashMap<>();

  @Override
  public void onRestoreStart(TopicPartition partition, String store, long startingOffset, long endingOffset) {
    startedMs.put(partition, System.currentTimeMillis());
  }

  @Override
  public void onBatchRestored(TopicPartition partition, String store, long batchEndOffset, long numRestored) {}

  @Override
  public void onRestoreEnd(TopicPartition partition, String store, long totalRestored) {
    long fromMs = startedMs.remove(partition);
    System.out.printf(
        "restored %d %d %d %d%n", partition.partition(), fromMs, System.currentTimeMillis(), totalRestored);
  }
}
