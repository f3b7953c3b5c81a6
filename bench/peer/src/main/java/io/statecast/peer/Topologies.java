package io.statecast.peer;

import com.google.protobuf.InvalidProtocolBufferException;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import statecast.orders.v1.OrderOuterClass.OrderChange;
import statecast.state.v1.State.StateRecord;

/**
 * Builds the topology that {@code peer.topology} names, over the topic {@code peer.topic}; each fills the store {@link
 * #STORE} with encoded StateRecords.
 *
 * <ul>
 *   <li>{@code table}: the topic has StateRecords, and is the table.
 *   <li>{@code latest}: the topic has OrderChanges; it keeps the newest row of each {@code order_id}.
 *   <li>{@code latest-by-key}: the same, for a topic whose records have the {@code order_id} as their key.
 *   <li>{@code aggregate}: the topic has OpenPositionChanges with the {@code position_id} as their key; it counts the
 *       positions on NASDAQ by client, and adds up their shares.
 * </ul>
 */
final class Topologies {
  static final String STORE = "states";

  private static final Grouped<String, byte[]> GROUPED = Grouped.with(Serdes.String(), Serdes.ByteArray());

  private Topologies() {}

  static Topology of(Properties properties) {
    StreamsBuilder builder = new StreamsBuilder();
    String topic = properties.getProperty("peer.topic");
    Consumed<String, byte[]> consumed = Consumed.with(Serdes.String(), Serdes.ByteArray());
    switch (properties.getProperty("peer.topology")) {
      case "table" -> builder.table(topic, consumed, store());
      case "latest" -> keepNewest(byOrderId(builder.stream(topic, consumed)));
      case "latest-by-key" -> keepNewest(builder.stream(topic, consumed).mapValues(Topologies::recordOf));
      case "aggregate" -> ShareHolders.sum(builder.stream(topic, consumed), store());
      default -> throw new IllegalArgumentException("peer.topology: table, latest, latest-by-key or aggregate");
    }
    return builder.build(properties);
  }

  /**
   * Keys the changes by their order id. Kafka Streams takes that for a new key, so what follows goes through a topic.
   */
  private static KStream<String, byte[]> byOrderId(KStream<String, byte[]> changes) {
    return changes.map((key, bytes) -> KeyValue.pair(parsed(bytes).getAfter().getOrderId(), recordOf(bytes)));
  }

  private static void keepNewest(KStream<String, byte[]> records) {
    records.groupByKey(GROUPED).reduce((held, next) -> isNewer(next, held) ? next : held, store());
  }

  private static Materialized<String, byte[], KeyValueStore<Bytes, byte[]>> store() {
    return Materialized.<String, byte[], KeyValueStore<Bytes, byte[]>>as(STORE)
        .withKeySerde(Serdes.String())
        .withValueSerde(Serdes.ByteArray())
        .withCachingDisabled();
  }

  private static byte[] recordOf(byte[] bytes) {
    OrderChange change = parsed(bytes);
    return StateRecord.newBuilder()
        .setEpoch(change.getSource().getEpoch())
        .setSequence(change.getSource().getLogSequenceNumber())
        .setSource(change.getSource())
        .setPayload(change.getAfter().toByteString())
        .build()
        .toByteArray();
  }

  private static boolean isNewer(byte[] next, byte[] held) {
    try {
      return StateRecord.parseFrom(next).getSequence() > StateRecord.parseFrom(held).getSequence();
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException("not a StateRecord", error);
    }
  }

  private static OrderChange parsed(byte[] bytes) {
    try {
      return OrderChange.parseFrom(bytes);
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException("not an OrderChange", error);
    }
  }
}
