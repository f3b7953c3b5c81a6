package io.statecast.spark.groups;

import java.nio.ByteBuffer;

/** Converts values to bytes that sort like the values when compared as unsigned numbers, one after the other. */
final class SortedBytes {
  private SortedBytes() {}

  static byte[] of(long number) {
    return ByteBuffer.allocate(Long.BYTES).putLong(number ^ Long.MIN_VALUE).array();
  }

  static long toLong(byte[] bytes) {
    return ByteBuffer.wrap(bytes).getLong() ^ Long.MIN_VALUE;
  }
}
