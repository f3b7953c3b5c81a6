package io.statecast.peer;

import io.grpc.Status;
import java.util.List;
import java.util.function.Consumer;
import statecast.query.v1.Query.Absence;
import statecast.query.v1.Query.KeyError;
import statecast.query.v1.Query.KeyResult;
import statecast.query.v1.Query.State;
import statecast.query.v1.QueryServiceOuterClass.BatchGetStatesResponse;

/** Gathers the answers of several instances into one, which it hands over when no key is missing. */
final class Batch {
  private final BatchGetStatesResponse.Builder response = BatchGetStatesResponse.newBuilder();
  private final Consumer<BatchGetStatesResponse> whole;
  private int missing;

  Batch(int keys, Consumer<BatchGetStatesResponse> whole) {
    this.missing = keys;
    this.whole = whole;
  }

  static KeyResult found(int index, State state) {
    return KeyResult.newBuilder().setIndex(index).setState(state).build();
  }

  static KeyResult absent(int index) {
    return KeyResult.newBuilder().setIndex(index).setAbsence(Absence.getDefaultInstance()).build();
  }

  static KeyResult failed(int index, Status status) {
    KeyError error = KeyError.newBuilder().setCode(status.getCode().value()).build();
    return KeyResult.newBuilder().setIndex(index).setError(error).build();
  }

  /** Adds results with indexes of the whole batch. */
  void add(BatchGetStatesResponse.Builder part, int keys) {
    synchronized (this) {
      response.addAllResults(part.getResultsList());
      response.addAllFreshness(part.getFreshnessList());
      missing -= keys;
      if (missing > 0) {
        return;
      }
    }
    whole.accept(response.build());
  }

  /** Adds the answer of another instance, with indexes of the part that it was asked for. */
  void addAnswer(BatchGetStatesResponse part, List<Integer> indexes) {
    BatchGetStatesResponse.Builder mapped = BatchGetStatesResponse.newBuilder();
    mapped.addAllFreshness(part.getFreshnessList());
    for (KeyResult result : part.getResultsList()) {
      mapped.addResults(result.toBuilder().setIndex(indexes.get(result.getIndex())));
    }
    add(mapped, indexes.size());
  }
}
