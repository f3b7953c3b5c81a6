package io.statecast.spark.state;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * Recognizes the keys of dead letters. A line with such a key passes an operator with state unchanged, and leaves
 * nothing there. No row has such a key: it begins with a NUL, and names the record's place, so that letters spread over
 * the partitions.
 */
public final class LetterKeys {
  /** The column that holds the dead letter; null on every other line. */
  public static final String COLUMN = "letter";

  private static final UTF8String MARK = UTF8String.fromString("\0letter/");

  private LetterKeys() {}

  public static boolean isOne(UTF8String key) {
    return key.startsWith(MARK);
  }
}
