package io.statecast.spark;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * Keys of records that are set aside: such a line passes an operator of the state as it is, and leaves nothing there. No
 * row has one: they begin with a NUL, and say where the record stands, so that letters spread over the partitions.
 */
final class LetterKeys {
  /** Name of the column that holds the record; null on every other line. */
  static final String COLUMN = "letter";

  private static final UTF8String MARK = UTF8String.fromString("\0letter/");

  private LetterKeys() {}

  static boolean isOne(UTF8String key) {
    return key.startsWith(MARK);
  }
}
