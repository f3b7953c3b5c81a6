package io.statecast.spark.decode;

import static io.statecast.spark.decode.TestMessages.ALL;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;

/** Checks that any texts of Debezium's JSON give a row or a reason; the reason goes into a header, so it is short. */
class RowFromTextsFuzzTest {
  private static final List<String> SCALARS = List.of("text", "number", "unsigned", "huge", "raw", "color", "at", "price");
  private static final int FIELDS = 12;

  private static final List<String> SOUND =
      List.of("7", "-7", "true", "FALSE", "red", "AQI=", "2024-08-28T12:34:56.123456Z", "2024-08-28 12:34:56", "1724848496123", "1.50", "-12.5E1");
  private static final List<String> ODD =
      List.of(
          "", " ", "\0", "-", "+", ".", "e", "1e999999999", "1E-400", "-1e400", "0x1", "NaN", "-Infinity", "9".repeat(25), "9".repeat(5_000),
          "2147483648", "-2147483649", "9223372036854775808", "18446744073709551616", "4294967296", "\u0663", "\ud800", "\ud83d\ude00",
          "9999-12-31T23:59:59.999999999Z", "10000-01-01", "-0001-01-01", "0000-00-00", "2024-02-30", "T", "2024-08-28T", "T12:00+99",
          "2024-08-28T12:34:56+18:01", "2024-08-28T25:00:00", "====", "A", "{\"scale\":2,\"value\":\"AQ==\"}", "{\"scale\":99999,\"value\":\"AQ==\"}",
          "{\"scale\":-99999,\"value\":\"\"}", "{", "__debezium_unavailable_value", "%s%n", "x".repeat(100_000));
  private static final List<String> TYPES =
      List.of(
          "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal", "io.debezium.time.Date",
          "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp", "unknown");
  private static final List<String> SCALES = List.of("2", "-2", "0", "2147483647", "99999999999", "x", "");

  private final Random random = new Random(1);

  private <T> T any(List<T> values) {
    return values.get(random.nextInt(values.size()));
  }

  /** Returns a valid text, an odd one, or one of them with a character changed or the end cut off. */
  private String text() {
    String text = random.nextBoolean() ? any(SOUND) : any(ODD);
    int at = text.isEmpty() ? 0 : random.nextInt(text.length());
    return switch (random.nextInt(4)) {
      case 0 -> text.substring(0, at);
      case 1 -> text.substring(0, at) + (char) random.nextInt(0x10000) + text.substring(at);
      default -> text;
    };
  }

  /** Returns the index of a scalar in the row. */
  private static int place(int scalar) {
    return TestMessages.all().findFieldByName(SCALARS.get(scalar)).getIndex();
  }

  @Test
  void anyTextsGiveARowOrAReason() {
    for (int i = 0; i < 50_000; i++) {
      Object[] texts = new Object[FIELDS];
      int changed = random.nextInt(SCALARS.size());
      texts[place(changed)] = text();
      texts[place(random.nextInt(SCALARS.size()))] = text();
      Row declared = RowFactory.create(SCALARS.get(changed), any(TYPES), random.nextBoolean() ? any(SCALES) : null);
      List<Row> types = random.nextBoolean() ? List.of(declared) : List.of();

      Row result = TestMessages.fromTexts(texts, types);

      assertTrue(result.isNullAt(0) != result.isNullAt(2));
      assertEquals(result.isNullAt(0), result.isNullAt(1));
      String problem = result.getString(2);
      assertTrue(problem == null || problem.length() < 500, problem);
    }
  }
}
