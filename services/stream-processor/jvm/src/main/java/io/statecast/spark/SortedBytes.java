package io.statecast.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Converts values to bytes that sort like the values when compared as unsigned numbers, one after the other. */
final class SortedBytes {
  private SortedBytes() {}

  static byte[] of(long number) {
    return ByteBuffer.allocate(Long.BYTES).putLong(number ^ Long.MIN_VALUE).array();
  }

  static long toLong(byte[] bytes) {
    return ByteBuffer.wrap(bytes).getLong() ^ Long.MIN_VALUE;
  }

  /** Returns UTF-8, which sorts by the code points of the characters. */
  static byte[] of(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String toText(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
