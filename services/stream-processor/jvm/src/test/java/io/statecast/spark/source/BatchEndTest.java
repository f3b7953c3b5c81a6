package io.statecast.spark.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.spark.sql.execution.datasources.v2.LowLatencyClock;
import org.apache.spark.util.ManualClock;
import org.apache.spark.util.SystemClock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BatchEndTest {
  private final ManualClock clock = new ManualClock(1_000_000_000);
  private long nanos = 5;
  private final BatchEnd end = new BatchEnd(() -> nanos);

  @AfterEach
  void putBackClock() {
    LowLatencyClock.setClock(new SystemClock());
  }

  private long leftAfter(long passedMs, long dayMs) {
    LowLatencyClock.setClock(clock);
    nanos += passedMs * 1_000_000;
    clock.advance(dayMs);
    return end.leftMs(1_000_030_000);
  }

  @Test
  void aClockThatGoesBackMakesNoBatchLonger() {
    assertEquals(30_000, leftAfter(0, 0));
    assertEquals(20_000, leftAfter(10_000, 10_000));
    assertEquals(15_000, leftAfter(5_000, -3_600_000));
    assertEquals(0, leftAfter(15_000, 15_000));
  }

  @Test
  void aClockThatGoesForwardEndsTheBatch() {
    assertEquals(29_000, leftAfter(1_000, 1_000));
    assertEquals(-3_571_000, leftAfter(0, 3_600_000));
  }
}
