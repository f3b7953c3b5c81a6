package io.statecast.peer;

import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.MoreExecutors;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.HostInfo;
import statecast.query.v1.Query.Freshness;
import statecast.query.v1.Query.Replica;
import statecast.query.v1.Query.Shard;
import statecast.query.v1.Query.State;
import statecast.query.v1.QueryServiceGrpc.QueryServiceImplBase;
import statecast.query.v1.QueryServiceOuterClass.BatchGetStatesRequest;
import statecast.query.v1.QueryServiceOuterClass.BatchGetStatesResponse;
import statecast.query.v1.QueryServiceOuterClass.GetStateRequest;
import statecast.query.v1.QueryServiceOuterClass.GetStateResponse;
import statecast.query.v1.QueryServiceOuterClass.ListShardsRequest;
import statecast.query.v1.QueryServiceOuterClass.ListShardsResponse;
import statecast.state.v1.State.StateKey;
import statecast.state.v1.State.StateRecord;

/** Serves Statecast's contract as far as interactive queries can: without positions, bounds and waiting. */
final class Lookups extends QueryServiceImplBase {
  private final Owners owners;
  private final String instance;

  Lookups(Owners owners, String instance) {
    this.owners = owners;
    this.instance = instance;
  }

  @Override
  public void getState(GetStateRequest request, StreamObserver<GetStateResponse> observer) {
    Owners.Place place = owners.placeOf(request.getKey().getGroup());
    if (PassedOn.here()) {
      answer(request, place.partition(), true, observer, () -> fail(observer, Status.UNAVAILABLE));
    } else {
      ask(request, place, 0, observer);
    }
  }

  /** Asks the place's hosts one after the other, from `index` on, until one answers. */
  private void ask(GetStateRequest request, Owners.Place place, int index, StreamObserver<GetStateResponse> observer) {
    if (index == place.hosts().size()) {
      fail(observer, Status.UNAVAILABLE.withDescription("no instance answers for the key"));
      return;
    }
    Runnable next = () -> ask(request, place, index + 1, observer);
    HostInfo host = place.hosts().get(index);
    if (owners.isSelf(host)) {
      answer(request, place.partition(), false, observer, next);
      return;
    }
    Futures.addCallback(owners.at(host).getState(request), new FutureCallback<>() {
      @Override
      public void onSuccess(GetStateResponse response) {
        finish(observer, response);
      }

      @Override
      public void onFailure(Throwable error) {
        Status status = Status.fromThrowable(error);
        if (status.getCode() == Status.Code.NOT_FOUND) {
          fail(observer, status);
        } else {
          next.run();
        }
      }
    }, MoreExecutors.directExecutor());
  }

  private void answer(
      GetStateRequest request,
      int partition,
      boolean forwarded,
      StreamObserver<GetStateResponse> observer,
      Runnable next) {
    StateRecord record;
    try {
      record = owners.read(partition, request.getKey().getGroup());
    } catch (InvalidStateStoreException error) {
      next.run();
      return;
    }
    if (isAbsent(record)) {
      fail(observer, Status.NOT_FOUND.withDescription("the key has no value"));
      return;
    }
    finish(observer, GetStateResponse.newBuilder()
        .setState(state(request.getKey(), record))
        .setFreshness(freshness(partition).setForwarded(forwarded))
        .build());
  }

  @Override
  public void batchGetStates(BatchGetStatesRequest request, StreamObserver<BatchGetStatesResponse> observer) {
    List<Owners.Place> places = new ArrayList<>(request.getKeysCount());
    for (int index = 0; index < request.getKeysCount(); index++) {
      places.add(owners.placeOf(request.getKeys(index).getKey().getGroup()));
    }
    Batch batch = new Batch(request.getKeysCount(), response -> finish(observer, response));
    if (PassedOn.here()) {
      readHere(request, places, allOf(request), true, batch);
      return;
    }
    Map<HostInfo, List<Integer>> byHost = new HashMap<>();
    for (int index = 0; index < places.size(); index++) {
      List<HostInfo> hosts = places.get(index).hosts();
      HostInfo host = hosts.isEmpty() ? HostInfo.unavailable() : hosts.get(0);
      byHost.computeIfAbsent(host, unused -> new ArrayList<>()).add(index);
    }
    // The other instances work while this one reads its own keys.
    byHost.forEach((host, indexes) -> {
      if (!owners.isSelf(host)) {
        askBatch(host, request, places, indexes, batch);
      }
    });
    byHost.forEach((host, indexes) -> {
      if (owners.isSelf(host)) {
        readHere(request, places, indexes, false, batch);
      }
    });
  }

  private void askBatch(
      HostInfo host, BatchGetStatesRequest request, List<Owners.Place> places, List<Integer> indexes, Batch batch) {
    BatchGetStatesRequest.Builder part = BatchGetStatesRequest.newBuilder().setStore(request.getStore());
    indexes.forEach(index -> part.addKeys(request.getKeys(index)));
    Futures.addCallback(owners.at(host).batchGetStates(part.build()), new FutureCallback<>() {
      @Override
      public void onSuccess(BatchGetStatesResponse response) {
        batch.addAnswer(response, indexes);
      }

      @Override
      public void onFailure(Throwable error) {
        readHere(request, places, indexes, false, batch); // stale, if there is a standby here
      }
    }, MoreExecutors.directExecutor());
  }

  private void readHere(
      BatchGetStatesRequest request, List<Owners.Place> places, List<Integer> indexes, boolean forwarded, Batch batch) {
    BatchGetStatesResponse.Builder response = BatchGetStatesResponse.newBuilder();
    Map<Integer, Freshness> answered = new TreeMap<>();
    for (int index : indexes) {
      StateKey key = request.getKeys(index).getKey();
      int partition = places.get(index).partition();
      try {
        StateRecord record = owners.read(partition, key.getGroup());
        response.addResults(isAbsent(record) ? Batch.absent(index) : Batch.found(index, state(key, record)));
        answered.computeIfAbsent(partition, number -> freshness(number).setForwarded(forwarded).build());
      } catch (InvalidStateStoreException error) {
        response.addResults(Batch.failed(index, Status.UNAVAILABLE));
      }
    }
    batch.add(response.addAllFreshness(answered.values()), indexes.size());
  }

  private static List<Integer> allOf(BatchGetStatesRequest request) {
    List<Integer> indexes = new ArrayList<>(request.getKeysCount());
    for (int index = 0; index < request.getKeysCount(); index++) {
      indexes.add(index);
    }
    return indexes;
  }

  @Override
  public void listShards(ListShardsRequest request, StreamObserver<ListShardsResponse> observer) {
    Map<Integer, Shard.Builder> shards = new TreeMap<>();
    if (owners.isRunning()) {
      for (StreamsMetadata each : owners.instances()) {
        each.topicPartitions().forEach(partition -> add(shards, partition, each, 1));
        each.standbyTopicPartitions().forEach(partition -> add(shards, partition, each, 2));
      }
    }
    ListShardsResponse.Builder response = ListShardsResponse.newBuilder();
    shards.values().forEach(response::addShards);
    finish(observer, response.build());
  }

  private static void add(Map<Integer, Shard.Builder> shards, TopicPartition partition, StreamsMetadata who, int rank) {
    Shard.Builder shard = shards.computeIfAbsent(
        partition.partition(), number -> Shard.newBuilder().setStore(Topologies.STORE).setPartition(number));
    String address = who.host() + ":" + who.port();
    if (shard.getReplicasList().stream().noneMatch(known -> known.getAddress().equals(address))) {
      shard.addReplicas(
          Replica.newBuilder().setInstance(address).setAddress(address).setRank(rank).setServing(true));
    }
  }

  private Freshness.Builder freshness(int partition) {
    return Freshness.newBuilder().setPartition(partition).setAnsweredBy(instance);
  }

  private static State state(StateKey key, StateRecord record) {
    return State.newBuilder()
        .setKey(key)
        .setCommitTime(record.getSource().getCommitTime())
        .setPayload(record.getPayload())
        .build();
  }

  private static boolean isAbsent(StateRecord record) {
    return record == null || record.getPayload().isEmpty();
  }

  private static <T> void finish(StreamObserver<T> observer, T response) {
    observer.onNext(response);
    observer.onCompleted();
  }

  private static void fail(StreamObserver<?> observer, Status status) {
    observer.onError(status.asRuntimeException());
  }
}
