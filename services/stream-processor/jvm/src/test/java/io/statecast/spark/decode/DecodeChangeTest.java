package io.statecast.spark.decode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;

class DecodeChangeTest {
  private static final byte BEFORE = (3 << 3) | 2;
  private static final byte AFTER = (4 << 3) | 2;
  private static final byte TEXT = 10;
  private static final byte UNKNOWN = (14 << 3) | 2;

  @Test
  void thePayloadIsTheRowAfterWithTheFieldsOfANewerProducer() {
    byte[] change = {BEFORE, 3, TEXT, 1, 'b', AFTER, 6, TEXT, 1, 'a', UNKNOWN, 1, 'n'};

    Row decoded = TestMessages.decode(change);

    assertEquals("a", decoded.getStruct(0).getStruct(1).getString(0));
    assertArrayEquals(new byte[] {TEXT, 1, 'a', UNKNOWN, 1, 'n'}, (byte[]) decoded.get(1));
    assertNull(decoded.get(2));
  }

  @Test
  void aChangeWithoutARowAfterHasNoPayload() {
    Row decoded = TestMessages.decode(new byte[] {BEFORE, 3, TEXT, 1, 'b'});

    assertNull(decoded.get(1));
    assertNull(decoded.get(2));
  }

  @Test
  void anEmptyRowAfterHasAnEmptyPayload() {
    Row decoded = TestMessages.decode(new byte[] {AFTER, 0});

    assertArrayEquals(new byte[0], (byte[]) decoded.get(1));
  }

  @Test
  void whatIsNoChangeHasNeitherRowNorPayload() {
    Row decoded = TestMessages.decode(new byte[] {AFTER, 9});

    assertNull(decoded.get(0));
    assertNull(decoded.get(1));
    assertEquals(0, decoded.getString(2).indexOf("not a test.Change: "));
  }
}
