package io.statecast.spark.decode;

import com.google.protobuf.InvalidProtocolBufferException;

/**
 * Refuses bytes that would not fit into memory once they are read.
 *
 * <p>An empty message takes two bytes in a record and about a hundred on the heap, so a record of a few megabytes could
 * end the JVM, and again after each start.
 */
final class ReadBudget {
  private static final int MOST_VALUES = 500_000;

  /** The bound of Protobuf's own parser. */
  private static final int DEEPEST = 100;

  private int values;
  private int depth;

  /** Counts a value. Throws UndecodableException if there are too many. */
  void count() {
    if (++values > MOST_VALUES) {
      throw new UndecodableException("it holds more than %,d values".formatted(MOST_VALUES));
    }
  }

  void descend() throws InvalidProtocolBufferException {
    if (++depth > DEEPEST) {
      throw new InvalidProtocolBufferException("messages are nested more than %d deep".formatted(DEEPEST));
    }
  }

  void ascend() {
    depth--;
  }
}
