package io.statecast.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Values as bytes that are in the values' order when they are compared as unsigned numbers, one after the other. */
final class SortedBytes {
  private SortedBytes() {}

  static byte[] of(long number) {
    return ByteBuffer.allocate(Long.BYTES).putLong(number ^ Long.MIN_VALUE).array();
  }

  static long toLong(byte[] bytes) {
    return ByteBuffer.wrap(bytes).getLong() ^ Long.MIN_VALUE;
  }

  /** UTF-8, whose order is that of the characters' code points. */
  static byte[] of(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String toText(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
