package io.statecast.spark.tables;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import io.statecast.spark.decode.MessageReader;
import io.statecast.spark.decode.MessageType;
import io.statecast.spark.decode.UndecodableException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the rows of a keyed topic: per key, the one of the highest (epoch, sequence). One thread applies records, any
 * number read.
 *
 * <p>A deleted key keeps its (epoch, sequence), so that a record that comes again cannot bring its row back.
 */
public final class TableRows {
  public static final String STATE_RECORD = "statecast.state.v1.StateRecord";
  static final String TOMBSTONE_HEADER = "statecast-state-record";
  private static final Logger LOG = LoggerFactory.getLogger(TableRows.class);

  private final Map<String, Version> versions = new ConcurrentHashMap<>();
  private final Descriptor state;
  private final Descriptor message;

  /** Holds rows of type `row`, each in a `record` of type StateRecord. */
  TableRows(MessageType record, MessageType row) {
    this.state = record.descriptor();
    this.message = row.descriptor();
  }

  /** Returns the row of the key; null if it has none. */
  InternalRow get(String key) {
    Version version = versions.get(key);
    return version == null ? null : version.row();
  }

  /** Applies a record if it is newer than the key's version; logs and skips one that cannot be read. */
  void apply(ConsumerRecord<byte[], byte[]> record) {
    try {
      versions.merge(key(record), version(record), (held, next) -> next.isAfter(held) ? next : held);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      LOG.warn("passed over offset {} of {}-{}: {}", record.offset(), record.topic(), record.partition(), e.getMessage());
    }
  }

  private static String key(ConsumerRecord<byte[], byte[]> record) {
    if (record.key() == null) {
      throw new UndecodableException("a record without a key");
    }
    return new String(record.key(), StandardCharsets.UTF_8);
  }

  private Version version(ConsumerRecord<byte[], byte[]> record) throws InvalidProtocolBufferException {
    DynamicMessage read = DynamicMessage.parseFrom(state, record.value() == null ? tombstone(record) : record.value());
    InternalRow row = record.value() == null ? null : row((ByteString) read.getField(state.findFieldByName("payload")));
    long epoch = (Long) read.getField(state.findFieldByName("epoch"));
    return new Version(epoch, (Long) read.getField(state.findFieldByName("sequence")), row);
  }

  private InternalRow row(ByteString payload) throws InvalidProtocolBufferException {
    return MessageReader.of(message).read(payload.toByteArray());
  }

  private static byte[] tombstone(ConsumerRecord<byte[], byte[]> record) {
    Header header = record.headers().lastHeader(TOMBSTONE_HEADER);
    if (header == null) {
      throw new UndecodableException("a tombstone without the header " + TOMBSTONE_HEADER);
    }
    return header.value();
  }

  private record Version(long epoch, long sequence, InternalRow row) {
    boolean isAfter(Version other) {
      return epoch > other.epoch || (epoch == other.epoch && sequence > other.sequence);
    }
  }
}
