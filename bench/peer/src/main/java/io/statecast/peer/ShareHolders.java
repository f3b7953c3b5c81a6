package io.statecast.peer;

import com.google.protobuf.InvalidProtocolBufferException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import statecast.change.v1.Change.Source;
import statecast.portfolio.v1.OpenPositionOuterClass.OpenPosition;
import statecast.portfolio.v1.OpenPositionOuterClass.OpenPositionChange;
import statecast.portfolio.v1.ShareHolderOuterClass.ShareHolder;
import statecast.state.v1.State.StateRecord;

/** Counts the positions of each client and adds up their shares, as the pipeline us-share-holders does. */
final class ShareHolders {
  private static final Grouped<String, byte[]> GROUPED = Grouped.with(Serdes.String(), Serdes.ByteArray());

  private ShareHolders() {}

  /** Fills the store with encoded StateRecords of ShareHolders; a changed position leaves its client's sums first. */
  static void sum(KStream<String, byte[]> changes, Materialized<String, byte[], KeyValueStore<Bytes, byte[]>> store) {
    changes
        .toTable(Materialized.with(Serdes.String(), Serdes.ByteArray()))
        .filter((key, bytes) -> parsed(bytes).getAfter().getExchange().equals("NASDAQ"))
        .groupBy((key, bytes) -> KeyValue.pair(parsed(bytes).getAfter().getClient(), bytes), GROUPED)
        .aggregate(
            () -> StateRecord.getDefaultInstance().toByteArray(),
            (client, bytes, sums) -> changed(client, parsed(bytes), sums, 1),
            (client, bytes, sums) -> changed(client, parsed(bytes), sums, -1),
            store);
  }

  private static byte[] changed(String client, OpenPositionChange change, byte[] sums, int sign) {
    try {
      StateRecord held = StateRecord.parseFrom(sums);
      ShareHolder holder = ShareHolder.parseFrom(held.getPayload());
      OpenPosition position = change.getAfter();
      ShareHolder next =
          holder.toBuilder()
              .setClient(client)
              .setPositions(holder.getPositions() + sign)
              .setShares(holder.getShares() + sign * position.getAmount())
              .build();
      return StateRecord.newBuilder()
          .setEpoch(1)
          .setSequence(held.getSequence() + 1)
          .setSource(newest(change.getSource(), held.getSource()))
          .setPayload(next.toByteString())
          .build()
          .toByteArray();
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException("not a StateRecord of a ShareHolder", error);
    }
  }

  private static Source newest(Source source, Source held) {
    return source.getLogSequenceNumber() > held.getLogSequenceNumber() ? source : held;
  }

  private static OpenPositionChange parsed(byte[] bytes) {
    try {
      return OpenPositionChange.parseFrom(bytes);
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException("not an OpenPositionChange", error);
    }
  }
}
