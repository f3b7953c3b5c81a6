package io.statecast.spark.expressions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Counts the bytes that the functions of one expression may still make of one row, per thread. */
final class Allowance {
  /** Far above any record in Kafka, and far below the memory of a JVM: no query survives when that runs out. */
  static final long BYTES = 64L << 20;

  /** The bytes of an element or field beside its own value: a reference, and the objects that Spark makes for it. */
  private static final int ELEMENT_BYTES = 64;
  private static final ThreadLocal<long[]> LEFT = ThreadLocal.withInitial(() -> new long[] {Long.MAX_VALUE});

  private Allowance() {}

  /** Reports that the allowance is exceeded; without a stack trace, because rows decide how often that happens. */
  static final class ExceededException extends RuntimeException {
    ExceededException() {
      super("an expression makes more than " + BYTES + " bytes of a row", null, false, false);
    }
  }

  /** Begins an expression. Returns the rest of the enclosing expression's allowance, for {@link #end}. */
  static long begin() {
    long[] left = LEFT.get();
    long outer = left[0];
    left[0] = BYTES;
    return outer;
  }

  static void end(long outer) {
    LEFT.get()[0] = outer;
  }

  /** Subtracts the bytes from the rest. */
  static void take(long bytes) {
    long[] left = LEFT.get();
    left[0] -= bytes;
    if (left[0] < 0) {
      throw new ExceededException();
    }
  }

  /** Returns the rest. */
  static long left() {
    return LEFT.get()[0];
  }

  /** Checks that so many copies of the value fit into the rest; subtracts nothing. */
  static void check(Object value, double copies) {
    long left = left();
    if (copies > 0 && size(value, left) * copies > left) {
      throw new ExceededException();
    }
  }

  /** Returns the bytes of the value itself, without those of the values that it refers to. */
  static long ownSize(Object value) {
    if (value instanceof GenericArrayData array) {
      return (long) array.numElements() * ELEMENT_BYTES;
    }
    return value instanceof GenericInternalRow row ? (long) row.numFields() * ELEMENT_BYTES : size(value, 0);
  }

  /** Returns the bytes of the value as Spark copies it, with all that it refers to; stops counting beyond `enough`. */
  static long size(Object value, long enough) {
    if (value instanceof UTF8String text) {
      return text.numBytes();
    } else if (value instanceof byte[] bytes) {
      return bytes.length;
    } else if (value instanceof UnsafeArrayData array) {
      return array.getSizeInBytes();
    } else if (value instanceof UnsafeRow row) {
      return row.getSizeInBytes();
    } else if (value instanceof GenericArrayData array) {
      return size(array.array(), enough);
    } else if (value instanceof GenericInternalRow row) {
      return size(row.values(), enough);
    } else if (value instanceof ArrayData array) {
      return (long) array.numElements() * ELEMENT_BYTES;
    }
    return value instanceof InternalRow row ? (long) row.numFields() * ELEMENT_BYTES : ELEMENT_BYTES;
  }

  private static long size(Object[] values, long enough) {
    long size = 0;
    for (Object each : values) {
      size += ELEMENT_BYTES + size(each, enough - size);
      if (size > enough) {
        return size;
      }
    }
    return size;
  }
}
