package io.statecast.spark.source;

import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter;
import scala.Function1;

/**
 * Reads the records of several partitions with one consumer, until the time of the batch is over.
 *
 * <p>A partition with an open transaction, or without a leader, holds back no other. Records that are gone end the
 * query, because the consumer has no way to reset an offset.
 */
final class SharedKafkaReader implements SupportsRealTimeRead<InternalRow> {
  /** The longest wait for records before the clock is read again: a drain moves it. */
  private static final long LOOK_MS = 500;

  private final IdleConsumers.Key key;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Function1<ConsumerRecord<byte[], byte[]>, InternalRow> toRow;
  private final Map<TopicPartition, Long> next = new HashMap<>();
  private final long endMs;
  private final BatchEnd batchEnd = new BatchEnd(System::nanoTime);
  private Iterator<ConsumerRecord<byte[], byte[]>> fetched = Collections.emptyIterator();
  private InternalRow row;
  private boolean failed;

  SharedKafkaReader(SharedKafkaStream.Share share) {
    KafkaBatchInputPartition first = share.partitions().get(0);
    for (KafkaBatchInputPartition each : share.partitions()) {
      next.put(each.offsetRange().topicPartition(), each.offsetRange().fromOffset());
    }
    key = IdleConsumers.Key.of(first.executorKafkaParams(), next.keySet());
    // Does not convert to an UnsafeRow, which would copy the record: Spark's projection above the scan takes any row.
    KafkaRecordToRowConverter converter = new KafkaRecordToRowConverter();
    toRow = first.includeHeaders() ? converter.toInternalRowWithHeaders() : converter.toInternalRowWithoutHeaders();
    consumer = IdleConsumers.take(key, first.executorKafkaParams());
    next.forEach(consumer::seek);
    endMs = share.endMs();
  }

  @Override
  public RecordStatus nextWithTimeout(Long startMs, Long timeoutMs) {
    long end = Math.min(startMs + timeoutMs, endMs);
    while (!fetched.hasNext()) {
      long left = batchEnd.leftMs(end);
      if (left <= 0) {
        return RecordStatus.newStatusWithoutArrivalTime(false);
      }
      fetched = poll(Math.min(left, LOOK_MS));
    }
    ConsumerRecord<byte[], byte[]> record = fetched.next();
    next.put(new TopicPartition(record.topic(), record.partition()), record.offset() + 1);
    row = toRow.apply(record);
    return RecordStatus.newStatusWithoutArrivalTime(true);
  }

  private Iterator<ConsumerRecord<byte[], byte[]>> poll(long timeoutMs) {
    failed = true;
    Iterator<ConsumerRecord<byte[], byte[]>> records = consumer.poll(Duration.ofMillis(timeoutMs)).iterator();
    failed = false;
    return records;
  }

  /** Returns the position after the records that were taken; those fetched beyond it are fetched again. */
  @Override
  public PartitionOffset getOffset() {
    return new SharedKafkaStream.ShareOffset(new HashMap<>(next));
  }

  @Override
  public boolean next() {
    throw new UnsupportedOperationException("this reader is for real-time mode alone");
  }

  @Override
  public InternalRow get() {
    return row;
  }

  /** Keeps the consumer for the next batch, unless a poll has failed or was interrupted, as when the query stops. */
  @Override
  public void close() {
    if (failed) {
      IdleConsumers.end(consumer);
    } else {
      IdleConsumers.put(key, consumer);
    }
  }
}
