package io.statecast.spark.decode;

import static io.statecast.spark.decode.TestMessages.ALL;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.DynamicMessage;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RowFromTextsTest {
  private static final List<String> FIELDS =
      List.of("text", "number", "unsigned", "huge", "raw", "color", "at", "lines", "maybe", "price", "maybe_price", "many_price");

  private Row read(String field, Object text, Row... declared) {
    Object[] texts = new Object[FIELDS.size()];
    texts[FIELDS.indexOf(field)] = text;
    return TestMessages.fromTexts(texts, List.of(declared));
  }

  private Object value(String field, Object text, Row... declared) {
    Row result = read(field, text, declared);
    assertNull(result.getString(2));
    return result.getStruct(0).get(FIELDS.indexOf(field));
  }

  private String problem(String field, Object text, Row... declared) {
    Row result = read(field, text, declared);
    assertTrue(result.isNullAt(0));
    assertTrue(result.isNullAt(1));
    return result.getString(2);
  }

  private static Row declared(String field, String name, String scale) {
    return RowFactory.create(field, name, scale);
  }

  @Test
  void theRowHasTheValuesThatItsPayloadDecodesTo() {
    Row made = read("text", "a");

    Row decoded = TestMessages.read((byte[]) made.get(1));

    assertEquals("a", made.getStruct(0).getString(0));
    assertEquals("a", decoded.getStruct(0).getString(0));
  }

  @Test
  void aNullIsNullInTheRowAndUnsetInThePayload() {
    assertNull(value("text", null));
    assertNull(value("color", null));
    assertNull(value("at", null));
    assertArrayEquals(new byte[0], (byte[]) read("text", null).get(1));
    assertNull(value("maybe", null));
    assertEquals(List.of(), value("lines", null));
  }

  @ParameterizedTest
  @CsvSource({
    "7, 7", "-7, -7", "7.00, 7", "1.2E3, 1200", "9223372036854775807, 9223372036854775807",
    "-9223372036854775808, -9223372036854775808"
  })
  void aWholeNumberIsReadInEveryForm(String text, long number) {
    assertEquals(number, value("number", text));
  }

  @ParameterizedTest
  @CsvSource({"1.5", "9223372036854775808", "many", "''", "0x10", "1E999999999", "NaN", "true"})
  void whatIsNoWholeNumberIsAProblem(String text) {
    assertEquals("number is not a whole number of type int64: " + text, problem("number", text));
  }

  @ParameterizedTest
  @CsvSource({"MDk=, 2, 123.45", "AeJA, 2, 1234.56", "/w==, 0, -1", "gA==, 0, -128", "/4A=, 1, -12.8", "Ew==, -2, 1900"})
  void aPreciseDecimalIsReadByItsScale(String base64, String scale, String number) {
    Row schema = declared("text", "org.apache.kafka.connect.data.Decimal", scale);

    assertEquals(number, value("text", base64, schema));
  }

  @Test
  void aDecimalWithoutCentsFitsAnIntegerField() {
    assertEquals(100L, value("number", "JxA=", declared("number", "org.apache.kafka.connect.data.Decimal", "2")));
    assertEquals(100L, value("number", "{\"value\": \"JxA=\", \"scale\": 2}"));
    assertTrue(problem("number", "{\"scale\":2,\"value\":\"AlQ=\"}").startsWith("number is not a whole number of type int64: "));
  }

  @ParameterizedTest
  @CsvSource({
    "12.50, 12.50", "12.5, 12.50", "-7, -7.00", "1.2E3, 1200.00", "0E-8, 0.00", "-0.000, 0.00", "9999999999.99, 9999999999.99",
    "0.0100, 0.01"
  })
  void aTextOfADecimalFieldIsANumberAndItsDigitsInThePayload(String text, String number) throws Exception {
    Row made = read("price", text);

    assertEquals(new BigDecimal(number), made.getStruct(0).get(FIELDS.indexOf("price")));
    DynamicMessage payload = DynamicMessage.parseFrom(TestMessages.all(), (byte[]) made.get(1));
    assertEquals(number, payload.getField(TestMessages.all().findFieldByName("price")));
  }

  @Test
  void aPreciseDecimalIsADecimalToo() {
    Row schema = declared("price", "org.apache.kafka.connect.data.Decimal", "2");

    assertEquals(new BigDecimal("123.45"), value("price", "MDk=", schema));
    assertEquals(List.of(new BigDecimal("123.45")), value("many_price", List.of("MDk="), declared("many_price", "org.apache.kafka.connect.data.Decimal", "2")));
    assertEquals(new BigDecimal("100.00"), value("price", "{\"value\": \"JxA=\", \"scale\": 2}"));
    assertNull(value("price", null));
    assertNull(value("maybe_price", null));
  }

  @ParameterizedTest
  @CsvSource({"1.234", "12345678901.00", "1E10", "NaN", "Infinity", "-Infinity", "''", "many", "0x10", "1E999999999", "1E-3", "'1,5'"})
  void whatIsNoDecimalOfTheFieldIsAProblem(String text) {
    assertEquals("price is not a decimal(12,2): " + text, problem("price", text));
  }

  @Test
  void unsignedNumbersHaveTheirOwnRange() {
    assertEquals(4_294_967_295L, value("unsigned", "4294967295"));
    assertEquals(new BigDecimal("18446744073709551615"), value("huge", "18446744073709551615"));
    assertTrue(problem("unsigned", "-1").startsWith("unsigned is not"));
    assertTrue(problem("huge", "18446744073709551616").startsWith("huge is not"));
  }

  @ParameterizedTest
  @CsvSource({"RED", "red", "Red"})
  void anEnumIsReadByItsName(String text) {
    assertEquals("RED", value("color", text));
  }

  @Test
  void aNameThatTheEnumDoesNotHaveIsAProblem() {
    assertEquals("color is not a name in test.Color: PURPLE", problem("color", "PURPLE"));
  }

  @Test
  void aDecimalWithItsScaleBesideItIsItsDigitsInATextField() {
    assertEquals("1234.5678", value("text", "{\"scale\":4,\"value\":\"ALxhTg==\"}"));
    assertEquals("{\"scale\": 4, \"value\": \"ALxhTg==\"}", value("text", "{\"scale\": 4, \"value\": \"ALxhTg==\"}"));
  }

  @Test
  void bytesAreBase64() {
    assertArrayEquals(new byte[] {-1, -17}, (byte[]) value("raw", "_-8="));
    assertArrayEquals(new byte[] {1, 2}, (byte[]) value("raw", "AQI="));
    assertEquals("raw is not base64: !", problem("raw", "!"));
  }

  @ParameterizedTest
  @CsvSource({
    "2024-08-28T12:34:56.123456Z, 2024-08-28T12:34:56.123456Z", "2024-08-28T14:34:56+02:00, 2024-08-28T12:34:56Z",
    "2024-08-28 12:34:56.5, 2024-08-28T12:34:56.500Z", "2024-08-28, 2024-08-28T00:00:00Z",
    "19963, 2024-08-28T00:00:00Z", "1724848496123, 2024-08-28T12:34:56.123Z",
    "1724848496123456, 2024-08-28T12:34:56.123456Z", "1724848496123456789, 2024-08-28T12:34:56.123456Z",
    "-1, 1969-12-31T00:00:00Z"
  })
  void aMomentIsReadInEveryForm(String text, Instant moment) {
    assertEquals(moment, value("at", text));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.Date, 1, 1970-01-02T00:00:00Z", "io.debezium.time.Timestamp, 1, 1970-01-01T00:00:00.001Z",
    "io.debezium.time.MicroTimestamp, 1, 1970-01-01T00:00:00.000001Z", "io.debezium.time.NanoTimestamp, 1000, 1970-01-01T00:00:00.000001Z",
    "org.apache.kafka.connect.data.Timestamp, -1, 1969-12-31T23:59:59.999Z"
  })
  void theSchemaDecidesTheUnitOfACount(String name, String text, Instant moment) {
    assertEquals(moment, value("at", text, declared("at", name, null)));
  }

  @ParameterizedTest
  @CsvSource({"yesterday", "12:30", "2024-13-01", "9223371331200000000", "-9223372036832400000", "99999999999999999999999", "+10000-01-01"})
  void whatIsNoMomentIsAProblem(String text) {
    Row schema = declared("at", "io.debezium.time.MicroTimestamp", null);

    assertEquals("at is not a moment between the years 1 and 9999: " + text, problem("at", text, schema));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.NanoTimestamp, 9223372036854775807", "io.debezium.time.NanoTimestamp, -9223372036854775808",
    "io.debezium.time.MicroTimestamp, 9223372036854775807", "io.debezium.time.Timestamp, 9223372036825200000",
    "io.debezium.time.Date, 2146033979", "io.debezium.time.Date, -2147472691", "io.debezium.time.Date, -622191234",
    "io.debezium.time.ZonedTimestamp, infinity", "io.debezium.time.ZonedTimestamp, -0043-03-15T12:00:00.000000Z",
    "io.debezium.time.IsoTimestamp, +292278994-08-16T23:00:00Z", "io.debezium.time.IsoDate, -5877611-06-22Z"
  })
  void anInfiniteMomentAsTheConnectorWritesItIsAProblem(String name, String text) {
    assertEquals("at is not a moment between the years 1 and 9999: " + text, problem("at", text, declared("at", name, null)));
  }

  @ParameterizedTest
  @CsvSource({
    "9223372036854775807", "-9223372036854775808", "9223372036825200000", "-9223372036832400000", "9223371331200000000", "2146033979",
    "-2147472691", "-622191234", "253402214400000", "253402300799999", "253402300799999999", "253402214400000000"
  })
  void aCountWithoutAUnitThatWouldPassForAnotherMomentIsAProblem(String text) {
    assertTrue(problem("at", text).contains("set schemas.enable=true at the connector's value converter): " + text));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.Timestamp, 253402300799999, 9999-12-31T23:59:59.999Z",
    "io.debezium.time.MicroTimestamp, 253402300799999999, 9999-12-31T23:59:59.999999Z",
    "io.debezium.time.Timestamp, 2146033979, 1970-01-25T20:07:13.979Z", "io.debezium.time.IsoDate, 2024-08-28Z, 2024-08-28T00:00:00Z"
  })
  void theSchemaKeepsAMomentFromPassingForAnother(String name, String text, Instant moment) {
    assertEquals(moment, value("at", text, declared("at", name, null)));
  }

  @Test
  void aDateInATextFieldIsAFullDate() {
    assertEquals("2024-08-28", value("text", "2024-08-28Z", declared("text", "io.debezium.time.IsoDate", null)));
    assertEquals(
        "2024-08-28T12:34:56.123000Z", value("text", "2024-08-28T12:34:56.123Z", declared("text", "io.debezium.time.IsoTimestamp", null)));
    assertEquals("2024-08-28", value("text", "19963", declared("text", "io.debezium.time.Date", null)));
    assertEquals("19963", value("text", "19963"));
    assertEquals(
        "2024-08-28T12:34:56.000000Z", value("text", "1724848496000", declared("text", "io.debezium.time.Timestamp", null)));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.Time, 36000500, 10:00:00.5", "org.apache.kafka.connect.data.Time, 36000000, 10:00:00",
    "io.debezium.time.MicroTime, 86399999999, 23:59:59.999999", "io.debezium.time.NanoTime, 0, 00:00:00",
    "io.debezium.time.MicroTime, 86400000000, 24:00:00", "io.debezium.time.ZonedTime, 10:00:00Z, 10:00:00Z"
  })
  void aTimeInATextFieldIsATimeOfDay(String name, String text, String time) {
    assertEquals(time, value("text", text, declared("text", name, null)));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.MicroTime, 86400000001, a time of day", "io.debezium.time.MicroTime, -1, a time of day",
    "io.debezium.time.NanoTime, noon, a time of day", "io.debezium.time.Time, 9223372036854775807, a time of day",
    "io.debezium.time.Date, 2147483647, a moment between the years 1 and 9999",
    "io.debezium.time.MicroDuration, 5, an interval as text; set interval.handling.mode=string at the connector"
  })
  void whatIsNoTextOfItsTypeIsAProblem(String name, String text, String expected) {
    assertEquals("text is not %s: %s".formatted(expected, text), problem("text", text, declared("text", name, null)));
  }

  @ParameterizedTest
  @CsvSource({
    "io.debezium.time.Year, 2024", "io.debezium.time.MicroTime, 36000000000", "io.debezium.time.MicroDuration, 5",
    "io.debezium.data.Bits, 1234"
  })
  void aCountOfAnotherTypeIsNoMoment(String name, String text) {
    assertEquals("at is not a moment between the years 1 and 9999: " + text, problem("at", text, declared("at", name, null)));
  }

  @Test
  void bitsAreNoNumberThoughTheirBase64MayLookLikeOne() {
    Row bits = declared("number", "io.debezium.data.Bits", null);

    assertEquals("number is not a whole number of type int64: 1234", problem("number", "1234", bits));
  }

  @Test
  void anElementThatDoesNotFitIsNamedByItsPath() {
    assertEquals(List.of(RowFactory.create("a")).toString(), value("lines", List.of(RowFactory.create("a"))).toString());
    String expected = "lines has an element that is NULL: only a field of type string can take the array, as JSON";
    assertEquals(expected, problem("lines", Collections.singletonList(null)));
  }

  @Test
  void aLongTextIsShownInPart() {
    assertTrue(problem("number", "x".repeat(100_000)).length() < 200);
  }
}
