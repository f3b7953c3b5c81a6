package io.statecast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;

class RowPositionTest {
  private static final long CHANGE = 0x1_0000_0100L;
  private static final long COMMIT = CHANGE + 800;

  private static Row last(long sequence) {
    return RowFactory.create(1L, sequence);
  }

  @Test
  void aChangeHasItsOwnNumber() {
    assertEquals(CHANGE, RowPosition.of(1, CHANGE, null));
    assertEquals(CHANGE, RowPosition.of(1, CHANGE, last(CHANGE - 8)));
    assertEquals(RowPosition.NOT_NEWER, RowPosition.of(1, CHANGE, last(CHANGE)));
    assertEquals(8, RowPosition.of(2, 8, last(CHANGE)));
  }

  @Test
  void aRowThatWasReadGoesBeforeAllChangesThatAreToCome() {
    long read = RowPosition.of(1, -COMMIT, null);

    assertEquals(CHANGE, RowPosition.of(1, CHANGE, last(read)));
  }

  @Test
  void aRowThatWasReadGoesRightBehindItsLastChange() {
    assertEquals(CHANGE + 1, RowPosition.of(1, -COMMIT, last(CHANGE)));
    assertEquals(CHANGE + 2, RowPosition.of(1, -COMMIT - 8, last(CHANGE + 1)));
    assertEquals(CHANGE + 8, RowPosition.of(1, CHANGE + 8, last(CHANGE + 7)));
  }

  @Test
  void aRowThatWasReadBeforeItsLastChangeIsNotNewer() {
    assertEquals(RowPosition.NOT_NEWER, RowPosition.of(1, -CHANGE, last(CHANGE)));
    assertEquals(RowPosition.NOT_NEWER, RowPosition.of(1, -COMMIT, RowFactory.create(2L, 1L)));
  }

  @Test
  void aRowThatWasReadManyTimesWithoutAChangeStaysTheNewest() {
    long sequence = RowPosition.of(1, -COMMIT, null);
    for (int times = 0; times < 100; times++) {
      sequence = RowPosition.of(1, -COMMIT, last(sequence));
    }

    assertEquals(101, sequence);
    assertEquals(COMMIT, RowPosition.of(1, -COMMIT, last(CHANGE + 7)));
  }

  @Test
  void placesAreComparedByEpochAndThenBySequence() {
    assertEquals(0, RowPosition.compare(last(CHANGE), last(CHANGE)));
    assertTrue(RowPosition.compare(last(CHANGE), last(COMMIT)) < 0);
    assertTrue(RowPosition.compare(RowFactory.create(2L, 1L), last(COMMIT)) > 0);
  }

  @Test
  void aLowerPlaceIsNewerByItsTimeOnlyWhereBothTimesSaySo() {
    assertTrue(RowPosition.isNewer(2L, 1L));
    assertFalse(RowPosition.isNewer(1L, 1L));
    assertFalse(RowPosition.isNewer(null, 1L));
    assertFalse(RowPosition.isNewer(1L, null));
  }
}
