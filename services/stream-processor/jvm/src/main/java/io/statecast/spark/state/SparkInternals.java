package io.statecast.spark.state;

import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.Iterator;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.ImplicitGroupingKeyTracker;
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.ttl.TTLState;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.streaming.ValueState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Wraps Spark's private parts that operators with state use; they may change with any release, and this is for 4.3. */
public final class SparkInternals {
  /** The seed of Spark's hash partitioning. */
  private static final int HASH_SEED = 42;

  private SparkInternals() {}

  /**
   * Returns the text keys that have a value in a state of this partition at the time of the call, one after the other
   * from the store: later changes do not disturb them.
   *
   * @param state the name of a value state without a time to live
   * @param sibling a state of the same operator with a time to live; only such a state gives access to its store
   */
  static Iterator<UTF8String> keys(String state, ValueState<?> sibling) {
    Iterator<UnsafeRowPair> pairs = CollectionConverters.asJava(((TTLState) sibling).store().iterator(state));
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return pairs.hasNext();
      }

      @Override
      public UTF8String next() {
        return pairs.next().key().getUTF8String(0).clone();
      }
    };
  }

  /** Runs the action with `key` as the current one, on which value states act. */
  static <T> T at(UTF8String key, Supplier<T> action) {
    Option<Object> own = ImplicitGroupingKeyTracker.getImplicitKeyOption();
    ImplicitGroupingKeyTracker.setImplicitKey(key);
    try {
      return action.get();
    } finally {
      ImplicitGroupingKeyTracker.setImplicitKey(own.getOrElse(() -> null));
    }
  }

  /** Returns Spark's order of a type's internal values, with nulls inside of rows first; not serializable. */
  public static Comparator<Object> order(DataType type) {
    return TypeUtils.getInterpretedOrdering(type)::compare;
  }

  /** Returns the partition, out of so many, to which Spark's shuffle by a text takes it. */
  static int partitionOf(String key, int partitions) {
    byte[] text = key.getBytes(StandardCharsets.UTF_8);
    int hash = Murmur3_x86_32.hashUnsafeBytes(text, Platform.BYTE_ARRAY_OFFSET, text.length, HASH_SEED);
    return Math.floorMod(hash, partitions);
  }
}
