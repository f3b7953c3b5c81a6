package io.statecast.spark.source;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourcePartitionOffset;

/**
 * Reads a topic as Spark's stream does, with its partitions spread over at most `tasks` tasks in real-time mode.
 *
 * <p>Its first batch ends after `firstMs`, so that queries that start together have their next ones at different times.
 */
final class SharedKafkaStream
    implements MicroBatchStream, SupportsAdmissionControl, SupportsRealTimeMode, ReportsSourceMetrics {
  private final KafkaMicroBatchStream stream;
  private final int tasks;
  private final long firstMs;
  private boolean begun;

  SharedKafkaStream(KafkaMicroBatchStream stream, int tasks, long firstMs) {
    this.stream = stream;
    this.tasks = tasks;
    this.firstMs = firstMs;
  }

  /** Several partitions of a topic for one task, which reads until `endMs` at most. */
  record Share(List<KafkaBatchInputPartition> partitions, long endMs) implements InputPartition {}

  /** The offset of the next record of each partition of a {@link Share}. */
  record ShareOffset(Map<TopicPartition, Long> next) implements PartitionOffset {}

  private enum ReaderFactory implements PartitionReaderFactory {
    ALL;

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition share) {
      return new SharedKafkaReader((Share) share);
    }
  }

  /**
   * Deals the partitions out in the order of their numbers. The original checks that none is gone or has lost records.
   */
  @Override
  public InputPartition[] planInputPartitions(Offset start) {
    List<KafkaBatchInputPartition> partitions =
        Arrays.stream(stream.planInputPartitions(start))
            .map(KafkaBatchInputPartition.class::cast)
            .sorted(Comparator.comparing(each -> each.offsetRange().partition()))
            .toList();
    int shares = Math.min(tasks, partitions.size());
    List<List<KafkaBatchInputPartition>> dealt = IntStream.range(0, shares).mapToObj(SharedKafkaStream::empty).toList();
    for (int number = 0; number < partitions.size(); number++) {
      dealt.get(number % shares).add(partitions.get(number));
    }
    long endMs = begun ? Long.MAX_VALUE : LowLatencyClock.getTimeMillis() + firstMs;
    begun = true;
    return dealt.stream().map(each -> new Share(each, endMs)).toArray(InputPartition[]::new);
  }

  private static List<KafkaBatchInputPartition> empty(int share) {
    return new ArrayList<>();
  }

  @Override
  public Offset mergeOffsets(PartitionOffset[] offsets) {
    return stream.mergeOffsets(
        Arrays.stream(offsets)
            .flatMap(each -> ((ShareOffset) each).next().entrySet().stream())
            .map(each -> new KafkaSourcePartitionOffset(each.getKey(), each.getValue()))
            .toArray(PartitionOffset[]::new));
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return ReaderFactory.ALL;
  }

  @Override
  public void prepareForRealTimeMode() {
    stream.prepareForRealTimeMode();
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    throw new UnsupportedOperationException("this source is for real-time mode alone");
  }

  @Override
  public Offset initialOffset() {
    return stream.initialOffset();
  }

  @Override
  public Offset latestOffset() {
    return stream.latestOffset();
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return stream.latestOffset(start, limit);
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return stream.getDefaultReadLimit();
  }

  @Override
  public Offset reportLatestOffset() {
    return stream.reportLatestOffset();
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    return stream.metrics(latestConsumed);
  }

  @Override
  public Offset deserializeOffset(String json) {
    return stream.deserializeOffset(json);
  }

  @Override
  public void commit(Offset end) {
    stream.commit(end);
  }

  @Override
  public void stop() {
    stream.stop();
  }

  @Override
  public String toString() {
    return stream.toString();
  }
}
