package io.statecast.spark.decode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.CodedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;

/** Checks that any bytes decode to a row or a reason; the reason goes into a header, so it is short. */
class ReadFuzzTest {
  private static final int MEGABYTE = 1 << 20;
  private static final byte AFTER = (4 << 3) | 2;
  private static final byte LINES = (8 << 3) | 2;

  private String outcome(byte[] value) {
    Row row = TestMessages.read(value);
    assertTrue(row.isNullAt(0) != row.isNullAt(1));
    Row change = TestMessages.decode(value);
    assertTrue(change.isNullAt(0) != change.isNullAt(2));
    assertTrue(!change.isNullAt(0) || change.isNullAt(1));
    String problem = row.getString(1);
    assertTrue(problem == null || problem.length() < 500, problem);
    return problem;
  }

  /** Checks the {@link #outcome}, and that Protobuf's own parser comes to the same. */
  private void sameOutcome(byte[] value) {
    outcome(value);
    Row read = TestMessages.read(value);
    assertEquals(OracleRows.read(value), read.isNullAt(0) ? null : OracleRows.text(read.getStruct(0)), () -> read.getString(1));
  }

  private static byte[] nested(byte tag, int depth) throws IOException {
    byte[] value = {};
    for (int i = 0; i < depth; i++) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      CodedOutputStream out = CodedOutputStream.newInstance(bytes);
      out.writeRawByte(tag);
      out.writeByteArrayNoTag(value);
      out.flush();
      value = bytes.toByteArray();
    }
    return value;
  }

  @Test
  void randomBytesGiveARowOrAReason() {
    Random random = new Random(1);
    for (int i = 0; i < 50_000; i++) {
      byte[] value = new byte[random.nextInt(200)];
      random.nextBytes(value);
      sameOutcome(value);
    }
  }

  @Test
  void soundRecordsWithAFewBytesChangedGiveARowOrAReason() {
    Random random = new Random(1);
    byte[] sound = TestMessages.sound();
    for (int i = 0; i < 50_000; i++) {
      byte[] value = sound.clone();
      for (int changes = random.nextInt(4) + 1; changes > 0; changes--) {
        value[random.nextInt(value.length)] = (byte) random.nextInt(256);
      }
      sameOutcome(value);
    }
  }

  @Test
  void everyPrefixAndEveryFlippedBitOfASoundRecordGivesARowOrAReason() {
    byte[] sound = TestMessages.sound();
    for (int length = 0; length < sound.length; length++) {
      sameOutcome(Arrays.copyOf(sound, length));
    }
    for (int bit = 0; bit < sound.length * 8; bit++) {
      byte[] flipped = sound.clone();
      flipped[bit / 8] ^= (byte) (1 << bit % 8);
      sameOutcome(flipped);
    }
  }

  @Test
  void lengthsBeyondTheRecordTakeNoMemory() {
    byte[][] lengths = {
      {-1, -1, -1, -1, 7}, {-1, -1, -1, -1, 15}, {-1, -1, -1, -1, -1, -1, -1, -1, -1, 1}, {-128, -128, -128, -128, 8}
    };
    for (byte[] length : lengths) {
      for (int tag = 2; tag < 128; tag += 8) {
        byte[] value = new byte[length.length + 1];
        value[0] = (byte) tag;
        System.arraycopy(length, 0, value, 1, length.length);

        assertNotNull(outcome(value));
      }
    }
  }

  @Test
  void deepNestingIsNoStackOverflow() throws IOException {
    byte startGroup = (15 << 3) | 3;
    byte[] groups = new byte[MEGABYTE];
    Arrays.fill(groups, startGroup);

    assertNotNull(outcome(groups));
    outcome(nested(LINES, 5_000));
    outcome(nested(AFTER, 5_000));
  }

  @Test
  void aLargeRecordOfManyEmptyMessagesIsAReasonAndNoExhaustedHeap() {
    byte[] value = new byte[32 * MEGABYTE];
    for (int i = 0; i < value.length; i += 2) {
      value[i] = LINES;
    }

    String problem = assertTimeoutPreemptively(Duration.ofSeconds(30), () -> outcome(value));

    assertEquals("it holds more than 500,000 values", problem);
  }

  @Test
  void aLargeRecordOfFewValuesIsARow() {
    byte[] value = new byte[5 * MEGABYTE + 5];
    value[0] = 10;
    int length = 5 * MEGABYTE;
    for (int i = 1; i < 5; i++) {
      value[i] = (byte) ((length & 0x7f) | (i < 4 ? 0x80 : 0));
      length >>>= 7;
    }
    Arrays.fill(value, 5, value.length, (byte) 'x');

    Row row = TestMessages.read(value);

    assertEquals(5 * MEGABYTE, row.getStruct(0).getString(0).length());
  }
}
