package io.statecast.spark.state;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * Makes keys that lead to each partition of the state, for a line that all of them must get. No row has such a key: it
 * begins with a NUL, and names its partition and the number of partitions.
 */
final class PartitionKeys {
  private static final String MARK = "\0";
  private static final UTF8String MARKED = UTF8String.fromString(MARK);
  private static final String BETWEEN = "/";

  private PartitionKeys() {}

  static boolean isOne(UTF8String key) {
    return key.startsWith(MARKED);
  }

  /** Returns a key for each of so many partitions, in their order. */
  static String[] all(int partitions) {
    String[] keys = new String[partitions];
    for (int partition = 0; partition < partitions; partition++) {
      keys[partition] = leadingTo(partition, partitions);
    }
    return keys;
  }

  private static String leadingTo(int partition, int partitions) {
    String prefix = MARK + partition + BETWEEN + partitions + BETWEEN;
    int number = 0;
    while (SparkInternals.partitionOf(prefix + number, partitions) != partition) {
      number++;
    }
    return prefix + number;
  }

  /**
   * Refuses a key that has reached another partition than its own, or is for another number of partitions.
   *
   * @throws IllegalStateException for such a key: some partition would not get the line, and would keep rows that it
   *     should forget
   */
  static void check(String key, int partition, int partitions) {
    String[] parts = key.substring(MARK.length()).split(BETWEEN);
    if (!parts[0].equals(String.valueOf(partition)) || !parts[1].equals(String.valueOf(partitions))) {
      throw new IllegalStateException(
          ("a TRUNCATE for partition %s of %s of the state came to %d of %d: start the query with as many shuffle"
                  + " partitions as its checkpoint has")
              .formatted(parts[0], parts[1], partition, partitions));
    }
  }
}
