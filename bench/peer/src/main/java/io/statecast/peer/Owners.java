package io.statecast.peer;

import com.google.protobuf.InvalidProtocolBufferException;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.MetadataUtils;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import statecast.query.v1.QueryServiceGrpc;
import statecast.query.v1.QueryServiceGrpc.QueryServiceFutureStub;
import statecast.state.v1.State.StateRecord;

/** Finds the instances that hold a key, reads this one's copy, and calls the others. */
final class Owners {
  private static final Serializer<String> KEYS = new StringSerializer();
  private static final long FORWARD_MS = 1_000;

  private final KafkaStreams streams;
  private final HostInfo self;
  private final Map<Integer, ReadOnlyKeyValueStore<String, byte[]>> stores = new ConcurrentHashMap<>();
  private final Map<HostInfo, QueryServiceFutureStub> stubs = new ConcurrentHashMap<>();

  Owners(KafkaStreams streams, HostInfo self) {
    this.streams = streams;
    this.self = self;
  }

  boolean isSelf(HostInfo host) {
    return self.equals(host);
  }

  boolean isRunning() {
    return streams.state() == KafkaStreams.State.RUNNING;
  }

  /** Returns the place of a key; without any host while the group is being rebalanced for the first time. */
  Place placeOf(String group) {
    KeyQueryMetadata metadata = streams.queryMetadataForKey(Topologies.STORE, group, KEYS);
    if (metadata == null || metadata.equals(KeyQueryMetadata.NOT_AVAILABLE)) {
      return new Place(-1, List.of());
    }
    List<HostInfo> hosts = new ArrayList<>(1 + metadata.standbyHosts().size());
    hosts.add(metadata.activeHost());
    hosts.addAll(metadata.standbyHosts());
    return new Place(metadata.partition(), hosts);
  }

  /** Returns this instance's record, stale or not, or null. Throws InvalidStateStoreException if it cannot say. */
  StateRecord read(int partition, String group) {
    byte[] bytes = stores.computeIfAbsent(partition, this::open).get(group);
    try {
      return bytes == null ? null : StateRecord.parseFrom(bytes);
    } catch (InvalidProtocolBufferException error) {
      throw new InvalidStateStoreException("not a StateRecord", error);
    }
  }

  /** Calls another instance, which answers from what it holds. */
  QueryServiceFutureStub at(HostInfo host) {
    return stubs.computeIfAbsent(host, this::connect).withDeadlineAfter(FORWARD_MS, TimeUnit.MILLISECONDS);
  }

  Collection<StreamsMetadata> instances() {
    return streams.metadataForAllStreamsClients();
  }

  private ReadOnlyKeyValueStore<String, byte[]> open(int partition) {
    StoreQueryParameters<ReadOnlyKeyValueStore<String, byte[]>> parameters =
        StoreQueryParameters.fromNameAndType(Topologies.STORE, QueryableStoreTypes.<String, byte[]>keyValueStore());
    return streams.store(parameters.withPartition(partition).enableStaleStores());
  }

  private QueryServiceFutureStub connect(HostInfo host) {
    ManagedChannel channel = NettyChannelBuilder.forAddress(host.host(), host.port()).usePlaintext().build();
    return QueryServiceGrpc.newFutureStub(channel)
        .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(PassedOn.headers()));
  }

  /** A key's partition and the instances that hold it, the owner first. */
  record Place(int partition, List<HostInfo> hosts) {}
}
