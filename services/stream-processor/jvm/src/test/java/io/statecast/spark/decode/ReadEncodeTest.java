package io.statecast.spark.decode;

import static io.statecast.spark.decode.TestMessages.ALL;
import static io.statecast.spark.decode.TestMessages.DESCRIPTORS;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReadEncodeTest {
  private static final Instant MOMENT = Instant.parse("2024-08-28T12:34:56.123456Z");

  private static Object[] full() {
    List<Row> lines = List.of(RowFactory.create("item-1"), RowFactory.create("item-2"));
    return new Object[] {
      "text", -7L, 4_294_967_295L, new BigDecimal("18446744073709551615"), new byte[] {0, 1}, "RED", MOMENT, lines, 0,
      new BigDecimal("12.50"), null, List.of(new BigDecimal("0.00"))
    };
  }

  private Row row(byte[] value) {
    Row result = TestMessages.read(value);
    assertNull(result.getString(1));
    return result.getStruct(0);
  }

  private String problem(byte[] value) {
    Row result = TestMessages.read(value);
    assertTrue(result.isNullAt(0));
    return result.getString(1);
  }

  @Test
  void everyKindOfFieldComesBack() {
    byte[] value = TestMessages.encode(full());

    Row row = row(value);

    assertEquals("text", row.get(0));
    assertEquals(-7L, row.get(1));
    assertEquals(4_294_967_295L, row.get(2));
    assertEquals(new BigDecimal("18446744073709551615"), row.get(3));
    assertArrayEquals(new byte[] {0, 1}, (byte[]) row.get(4));
    assertEquals("RED", row.get(5));
    assertEquals(MOMENT, row.get(6));
    assertEquals(List.of(RowFactory.create("item-1"), RowFactory.create("item-2")), row.get(7));
    assertEquals(0, row.get(8));
    assertEquals(new BigDecimal("12.50"), row.get(9));
    assertNull(row.get(10));
    assertEquals(List.of(new BigDecimal("0.00")), row.get(11));
  }

  private static byte[] text(int number, String text) {
    byte[] ascii = text.getBytes(StandardCharsets.UTF_8);
    byte[] field = new byte[ascii.length + 2];
    field[0] = (byte) (number << 3 | 2);
    field[1] = (byte) ascii.length;
    System.arraycopy(ascii, 0, field, 2, ascii.length);
    return field;
  }

  @ParameterizedTest
  @CsvSource({"12.50, 12.50", "+12.5, 12.50", "-7, -7.00", "1E3, 1000.00", "0E-99, 0.00", ".5, 0.50", "9999999999.99, 9999999999.99", "100.000, 100.00"})
  void aDecimalIsReadInAnyFormThatItHoldsExactly(String text, String number) {
    assertEquals(new BigDecimal(number), row(text(10, text)).get(9));
    assertEquals(new BigDecimal(number), row(text(11, text)).get(10));
    assertEquals(List.of(new BigDecimal(number)), row(text(12, text)).get(11));
  }

  @ParameterizedTest
  @CsvSource({"1.234", "10000000000", "1E10", "1E-3", "NaN", "Infinity", "many", "0x10", "' 1'", "1E2147483647", "10E2147483647", "1E-2147483647", "\u0663"})
  void whatIsNoDecimalOfTheFieldIsAProblem(String text) {
    assertEquals("test.All.price is not a decimal(12,2): " + text, problem(text(10, text)));
    assertEquals("test.All.maybe_price is not a decimal(12,2): " + text, problem(text(11, text)));
    assertEquals("test.All.many_price is not a decimal(12,2): " + text, problem(text(12, text)));
  }

  @Test
  void anEmptyTextIsNoValueOfADecimalWithoutPresenceAndWrongElsewhere() {
    assertNull(row(new byte[0]).get(9));
    assertNull(row(text(10, "")).get(9));
    assertEquals("test.All.maybe_price is not a decimal(12,2): ", problem(text(11, "")));
    assertEquals("test.All.many_price is not a decimal(12,2): ", problem(text(12, "")));
  }

  @Test
  void aZeroIsWrittenWhereAnUnsetDecimalIsNone() {
    Object[] values = new Object[TestMessages.all().getFields().size()];
    assertArrayEquals(new byte[0], TestMessages.encode(values.clone()));
    values[9] = new BigDecimal("0E-2");

    assertArrayEquals(text(10, "0.00"), TestMessages.encode(values));
  }

  @Test
  void whatIsNotSetIsNullWhereItHasPresenceAndTheDefaultElsewhere() {
    Row row = row(new byte[0]);

    assertEquals("", row.get(0));
    assertEquals("NONE", row.get(5));
    assertNull(row.get(6));
    assertEquals(List.of(), row.get(7));
    assertNull(row.get(8));
  }

  @Test
  void aRowOfAnotherShapeIsRefused() {
    assertThrows(IllegalArgumentException.class, () -> TestMessages.encode("text"));
  }

  @Test
  void aTruncatedValueIsAProblem() {
    byte[] truncated = {10, 5, 'a'};

    assertTrue(problem(truncated).contains("input"), () -> problem(truncated));
  }

  @Test
  void anUnknownEnumNumberIsAProblemThatNamesTheField() {
    byte[] number9 = {6 << 3, 9};

    assertEquals("test.All.color: test.Color has no value 9", problem(number9));
  }

  @Test
  void aTimestampWithTooManyNanosecondsIsAProblem() {
    byte[] nanos = {(7 << 3) | 2, 6, 2 << 3, (byte) 0x80, (byte) 0x94, (byte) 0xeb, (byte) 0xdc, 0x03};

    assertTrue(problem(nanos).contains("no valid Timestamp"), () -> problem(nanos));
  }

  @Test
  void bytesThatAreNoTextAreAProblem() {
    byte[] text = {10, 1, (byte) 0xff};

    assertTrue(problem(text).contains("UTF-8"), () -> problem(text));
  }

  @Test
  void aMessageThatComesTwiceIsMerged() {
    byte[] at = {(7 << 3) | 2, 2, 1 << 3, 5, (7 << 3) | 2, 3, 2 << 3, (byte) 0xd8, 0x36};

    assertEquals(Instant.ofEpochSecond(5, 7_000), row(at).get(6));
  }

  @Test
  void anUnknownMessageIsTheCallersFault() {
    assertThrows(IllegalArgumentException.class, () -> DESCRIPTORS.type("test.Nothing"));
  }

  @Test
  void somethingElseThanADescriptorSetIsTheCallersFault() {
    assertThrows(IllegalArgumentException.class, () -> new DescriptorSet(new byte[] {10, 5, 'a'}));
  }
}
