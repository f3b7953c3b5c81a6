package io.statecast.spark.state;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PartitionKeysTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 64, 200})
  void eachPartitionHasAKeyThatLeadsToIt(int partitions) {
    String[] keys = PartitionKeys.all(partitions);

    assertEquals(partitions, keys.length);
    for (int partition = 0; partition < partitions; partition++) {
      String key = keys[partition];
      int reached = SparkInternals.partitionOf(key, partitions);
      assertEquals(partition, reached);
      assertTrue(PartitionKeys.isOne(UTF8String.fromString(key)));
      assertDoesNotThrow(() -> PartitionKeys.check(key, reached, partitions));
    }
  }

  @Test
  void aKeyForAnotherNumberOfPartitionsIsRefused() {
    String key = PartitionKeys.all(2)[1];

    assertThrows(IllegalStateException.class, () -> PartitionKeys.check(key, 0, 2));
    Exception refused = assertThrows(IllegalStateException.class, () -> PartitionKeys.check(key, 1, 4));

    assertEquals(
        "a TRUNCATE for partition 1 of 2 of the state came to 1 of 4: start the query with as many shuffle partitions"
            + " as its checkpoint has",
        refused.getMessage());
  }
}
