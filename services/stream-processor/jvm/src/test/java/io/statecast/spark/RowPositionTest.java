package io.statecast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;

class RowPositionTest {
  private static final long CHANGE = 0x1_0000_0100L;
  private static final long COMMIT = CHANGE + 800;

  private static Row position(long sequence, long written) {
    return RowFactory.create(1L, sequence, written, null);
  }

  private static Row changed(long sequence) {
    return position(sequence, sequence);
  }

  private static Row of(long sequence, Row last) {
    return RowPosition.of(1, sequence, null, last);
  }

  @Test
  void aChangeHasItsOwnNumber() {
    assertEquals(changed(CHANGE), of(CHANGE, null));
    assertEquals(changed(CHANGE), of(CHANGE, changed(CHANGE - 8)));
    assertNull(of(CHANGE, changed(CHANGE)));
    assertEquals(RowFactory.create(2L, 8L, 8L, null), RowPosition.of(2, 8, null, position(CHANGE, CHANGE + 20)));
    assertNull(RowPosition.of(1, CHANGE + 8, null, RowFactory.create(2L, 1L, 1L, null)));
  }

  @Test
  void aRowThatWasReadGoesBeforeAllChangesThatAreToCome() {
    Row read = of(-COMMIT, null);

    assertEquals(position(0, 1), read);
    assertEquals(changed(CHANGE), of(CHANGE, read));
  }

  @Test
  void aRowThatWasReadGoesRightBehindItsLastChange() {
    assertEquals(position(CHANGE, CHANGE + 1), of(-COMMIT, changed(CHANGE)));
    assertEquals(position(CHANGE, CHANGE + 2), of(-COMMIT - 8, position(CHANGE, CHANGE + 1)));
    assertEquals(changed(CHANGE + 8), of(CHANGE + 8, position(CHANGE, CHANGE + 7)));
  }

  @Test
  void aRowThatWasReadBeforeItsLastChangeIsNotNewer() {
    assertNull(of(-CHANGE, changed(CHANGE)));
    assertNull(of(-COMMIT, RowFactory.create(2L, 1L, 1L, null)));
  }

  @Test
  void aChangeOfATransactionThatWasOpenWinsHoweverOftenTheRowWasRead() {
    Row last = changed(CHANGE);
    for (int times = 1; times <= 100; times++) {
      last = of(-COMMIT, last);

      assertEquals(position(CHANGE, CHANGE + times), last);
      assertEquals(position(CHANGE + 8, Math.max(CHANGE + 8, CHANGE + times + 1)), of(CHANGE + 8, last));
    }
    assertNull(of(CHANGE, last));
  }

  @Test
  void aTruncationIsWrittenAboveTheRowsThatItTakesOut() {
    Row truncation = changed(CHANGE + 8);

    assertEquals(position(CHANGE + 8, CHANGE + 21), RowPosition.after(position(CHANGE, CHANGE + 20), truncation));
    assertEquals(truncation, RowPosition.after(changed(CHANGE), truncation));
    assertEquals(truncation, RowPosition.after(RowFactory.create(0L, CHANGE, COMMIT, null), truncation));
  }

  @Test
  void aTimeThatSaysNothingLeavesTheOneThatWasKnown() {
    Row last = RowFactory.create(1L, CHANGE, CHANGE, 5L);

    assertEquals(5L, of(CHANGE + 8, last).get(RowPosition.TIME));
    assertEquals(7L, RowPosition.of(1, CHANGE + 8, 7L, last).get(RowPosition.TIME));
  }

  @Test
  void positionsAreComparedByEpochThenByTheirChangeThenByTheirNumber() {
    assertEquals(0, RowPosition.compare(changed(CHANGE), changed(CHANGE)));
    assertTrue(RowPosition.compare(changed(CHANGE), position(CHANGE, CHANGE + 9)) < 0);
    assertTrue(RowPosition.compare(position(CHANGE, COMMIT + 8), changed(COMMIT)) < 0);
    assertTrue(RowPosition.compare(RowFactory.create(2L, 1L, 1L, null), changed(COMMIT)) > 0);
  }

  @Test
  void aLowerPlaceIsNewerByItsTimeOnlyWhereBothTimesSaySo() {
    assertTrue(RowPosition.isNewer(2L, 1L));
    assertFalse(RowPosition.isNewer(1L, 1L));
    assertFalse(RowPosition.isNewer(null, 1L));
    assertFalse(RowPosition.isNewer(1L, null));
  }
}
