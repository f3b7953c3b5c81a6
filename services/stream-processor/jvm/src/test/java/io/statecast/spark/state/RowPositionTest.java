package io.statecast.spark.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RowPositionTest {
  private static final long CHANGE = 0x1_0000_0100L;
  private static final long COMMIT = CHANGE + 800;

  private static RowPosition position(long sequence, long written) {
    return new RowPosition(1L, sequence, written, null);
  }

  private static RowPosition changed(long sequence) {
    return position(sequence, sequence);
  }

  private static RowPosition of(long sequence, RowPosition last) {
    return RowPosition.of(1, sequence, null, last);
  }

  @Test
  void aChangeHasItsOwnNumber() {
    assertEquals(changed(CHANGE), of(CHANGE, null));
    assertEquals(changed(CHANGE), of(CHANGE, changed(CHANGE - 8)));
    assertNull(of(CHANGE, changed(CHANGE)));
    assertEquals(new RowPosition(2L, 8L, 8L, null), RowPosition.of(2, 8, null, position(CHANGE, CHANGE + 20)));
    assertNull(RowPosition.of(1, CHANGE + 8, null, new RowPosition(2L, 1L, 1L, null)));
  }

  @Test
  void aRowThatWasReadGoesBeforeAllChangesThatAreToCome() {
    RowPosition read = of(-COMMIT, null);

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
    assertNull(of(-COMMIT, new RowPosition(2L, 1L, 1L, null)));
  }

  @Test
  void aChangeOfATransactionThatWasOpenWinsHoweverOftenTheRowWasRead() {
    RowPosition last = changed(CHANGE);
    for (int times = 1; times <= 100; times++) {
      last = of(-COMMIT, last);

      assertEquals(position(CHANGE, CHANGE + times), last);
      assertEquals(position(CHANGE + 8, Math.max(CHANGE + 8, CHANGE + times + 1)), of(CHANGE + 8, last));
    }
    assertNull(of(CHANGE, last));
  }

  @Test
  void aTruncationIsWrittenAboveTheRowsThatItTakesOut() {
    RowPosition truncation = changed(CHANGE + 8);

    assertEquals(position(CHANGE + 8, CHANGE + 21), position(CHANGE, CHANGE + 20).movedTo(truncation));
    assertEquals(truncation, changed(CHANGE).movedTo(truncation));
    assertEquals(truncation, new RowPosition(0L, CHANGE, COMMIT, null).movedTo(truncation));
  }

  @Test
  void aTimeThatSaysNothingLeavesTheOneThatWasKnown() {
    RowPosition last = new RowPosition(1L, CHANGE, CHANGE, 5L);

    assertEquals(5L, of(CHANGE + 8, last).time());
    assertEquals(7L, RowPosition.of(1, CHANGE + 8, 7L, last).time());
  }

  @Test
  void positionsAreComparedByEpochThenByTheirChangeThenByTheirNumber() {
    assertEquals(0, changed(CHANGE).compareTo(changed(CHANGE)));
    assertTrue(changed(CHANGE).compareTo(position(CHANGE, CHANGE + 9)) < 0);
    assertTrue(position(CHANGE, COMMIT + 8).compareTo(changed(COMMIT)) < 0);
    assertTrue(new RowPosition(2L, 1L, 1L, null).compareTo(changed(COMMIT)) > 0);
  }

  @Test
  void aLowerPlaceIsNewerByItsTimeOnlyWhereBothTimesSaySo() {
    assertTrue(RowPosition.isNewer(2L, 1L));
    assertFalse(RowPosition.isNewer(1L, 1L));
    assertFalse(RowPosition.isNewer(null, 1L));
    assertFalse(RowPosition.isNewer(1L, null));
  }
}
