package io.statecast.spark.groups;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.sql.catalyst.expressions.XXH64;

/**
 * Counts the values of a collection in which values come and go, within bounds on their number and bytes.
 *
 * <p>It counts exactly all values up to a last one, the `horizon`, which moves down when there are too many. Of the
 * values behind it, it keeps only their number and the sum of their hashes. Both are zero when all of them have gone,
 * and then there is no horizon. Counts may be negative for a while, because values come and go in any order.
 */
final class BoundedBag {
  private static final long SEED = 42;

  private final TreeMap<byte[], Long> counts = new TreeMap<>(Arrays::compareUnsigned);
  private final int maxValues;
  private final int maxBytes;
  private int bytes;
  /** The last value that is counted exactly; null when all are. */
  private byte[] horizon;
  private long behind;
  private long hashesBehind;

  private BoundedBag(int maxValues, int maxBytes) {
    this.maxValues = maxValues;
    this.maxBytes = maxBytes;
  }

  /** Reads the bag that {@link #bytes} has written; null gives an empty one. */
  static BoundedBag of(byte[] written, int maxValues, int maxBytes) {
    BoundedBag bag = new BoundedBag(maxValues, maxBytes);
    if (written == null) {
      return bag;
    }
    try {
      CodedInputStream in = CodedInputStream.newInstance(written);
      bag.horizon = in.readBool() ? in.readByteArray() : null;
      bag.behind = in.readSInt64();
      bag.hashesBehind = in.readSFixed64();
      while (!in.isAtEnd()) {
        byte[] value = in.readByteArray();
        bag.counts.put(value, in.readSInt64());
        bag.bytes += value.length;
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bag;
  }

  byte[] bytes() {
    ByteArrayOutputStream written = new ByteArrayOutputStream();
    CodedOutputStream out = CodedOutputStream.newInstance(written);
    try {
      out.writeBoolNoTag(horizon != null);
      if (horizon != null) {
        out.writeByteArrayNoTag(horizon);
      }
      out.writeSInt64NoTag(behind);
      out.writeSFixed64NoTag(hashesBehind);
      for (Map.Entry<byte[], Long> each : counts.entrySet()) {
        out.writeByteArrayNoTag(each.getKey());
        out.writeSInt64NoTag(each.getValue());
      }
      out.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return written.toByteArray();
  }

  /** Adds `times`, which may be negative, to the count of the value. */
  void count(byte[] value, long times) {
    put(value, times);
    settle();
  }

  /** Returns the first values that are present, at most so many and of at most so many bytes. */
  List<byte[]> first(int maxValues, int maxBytes) {
    List<byte[]> values = new ArrayList<>();
    int taken = 0;
    for (Map.Entry<byte[], Long> each : counts.entrySet()) {
      if (each.getValue() > 0) {
        taken += each.getKey().length;
        if (values.size() == maxValues || taken > maxBytes) {
          break;
        }
        values.add(each.getKey());
      }
    }
    return values;
  }

  /** Returns whether more than so many values are present. */
  boolean hasMoreThan(int values) {
    return horizon != null || counts.values().stream().filter(times -> times > 0).count() > values;
  }

  private void put(byte[] value, long times) {
    if (horizon != null && Arrays.compareUnsigned(value, horizon) > 0) {
      behind += times;
      hashesBehind += times * hash(value);
      return;
    }
    Long before = counts.get(value);
    long after = (before == null ? 0 : before) + times;
    if (after == 0) {
      counts.remove(value);
    } else {
      counts.put(value, after);
    }
    bytes += (after == 0 ? 0 : value.length) - (before == null ? 0 : value.length);
  }

  /**
   * Moves values that are too many, or behind the horizon, out of the counts; removes a horizon with nothing behind it.
   */
  private void settle() {
    while (!counts.isEmpty() && (isTooLarge() || isBehind(counts.lastKey()))) {
      Map.Entry<byte[], Long> last = counts.pollLastEntry();
      bytes -= last.getKey().length;
      behind += last.getValue();
      hashesBehind += last.getValue() * hash(last.getKey());
      byte[] left = counts.isEmpty() ? new byte[0] : counts.lastKey();
      horizon = horizon == null || Arrays.compareUnsigned(left, horizon) < 0 ? left : horizon;
    }
    if (behind == 0 && hashesBehind == 0) {
      horizon = null;
    }
  }

  private boolean isTooLarge() {
    return counts.size() > maxValues || bytes > maxBytes;
  }

  private boolean isBehind(byte[] value) {
    return horizon != null && Arrays.compareUnsigned(value, horizon) > 0;
  }

  private static long hash(byte[] value) {
    return XXH64.hashUnsafeBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length, SEED);
  }
}
