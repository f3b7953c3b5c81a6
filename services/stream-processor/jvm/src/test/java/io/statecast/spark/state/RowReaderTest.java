package io.statecast.spark.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Random;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.junit.jupiter.api.Test;

class RowReaderTest {
  private static final DecimalType WIDE = new DecimalType(DecimalType.MAX_PRECISION(), 3);

  @Test
  void decimalsOfAllLengthsAreReadAsTheyWereWritten() {
    Random random = new Random(7);
    for (int bits = 0; bits <= 126; bits++) {
      for (int i = 0; i < 20; i++) {
        check(new BigInteger(bits, random));
        check(new BigInteger(bits, random).negate());
      }
      check(BigInteger.TWO.pow(bits));
      check(BigInteger.TWO.pow(bits).subtract(BigInteger.ONE));
      check(BigInteger.TWO.pow(bits).negate());
    }
    for (int digits = 0; digits < DecimalType.MAX_PRECISION(); digits++) {
      check(BigInteger.TEN.pow(digits));
      check(BigInteger.TEN.pow(digits).subtract(BigInteger.ONE).negate());
    }
  }

  @Test
  void aMissingDecimalIsNull() {
    assertNull(RowReader.decimal(null, WIDE));
  }

  private static void check(BigInteger unscaled) {
    Decimal read = RowReader.decimal(unscaled.toByteArray(), WIDE);

    assertEquals(new BigDecimal(unscaled, WIDE.scale()), read.toJavaBigDecimal());
    assertEquals(WIDE.precision(), read.precision());
  }
}
