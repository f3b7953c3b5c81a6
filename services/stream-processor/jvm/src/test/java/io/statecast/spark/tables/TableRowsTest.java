package io.statecast.spark.tables;

import static io.statecast.spark.tables.TestTable.row;
import static io.statecast.spark.tables.TestTable.tombstone;
import static io.statecast.spark.tables.TestTable.value;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.statecast.spark.decode.TestRows;
import org.junit.jupiter.api.Test;

class TableRowsTest {
  private final TableRows rows = TestTable.rows();

  private void assertName(String name) {
    assertEquals(TestRows.row(name), rows.get("a"));
  }

  @Test
  void anUnknownKeyHasNoRow() {
    assertNull(rows.get("a"));
  }

  @Test
  void onlyAHigherSequenceReplacesARow() {
    rows.apply(row(0, "a", 1, 5, "five"));
    rows.apply(row(1, "a", 1, 4, "four"));
    rows.apply(row(2, "a", 1, 5, "five again"));

    assertName("five");

    rows.apply(row(3, "a", 1, 6, "six"));

    assertName("six");
  }

  @Test
  void aHigherEpochWinsOverAnySequence() {
    rows.apply(row(0, "a", 1, 5, "old"));
    rows.apply(row(1, "a", 2, 1, "new"));
    rows.apply(row(2, "a", 1, 9, "late"));

    assertName("new");
  }

  @Test
  void aDeletedRowDoesNotComeBackByAnOlderRecord() {
    rows.apply(row(0, "a", 1, 5, "five"));
    rows.apply(tombstone(1, "a", 1, 6));
    rows.apply(row(2, "a", 1, 5, "five"));

    assertNull(rows.get("a"));

    rows.apply(row(3, "a", 1, 7, "seven"));

    assertName("seven");
  }

  @Test
  void whatCannotBeReadIsPassedOver() {
    rows.apply(row(0, "a", 1, 5, "five"));
    rows.apply(value(1, "a", new byte[] {10, 5, 'a'}));
    rows.apply(value(2, "a", null));
    rows.apply(value(3, null, new byte[0]));

    assertName("five");
  }
}
