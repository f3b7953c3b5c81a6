package io.statecast.spark.decode;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads a number in the forms that Debezium writes: digits, or the bytes of a decimal.
 *
 * <p>The connector's `decimal.handling.mode` decides: `string` and `double` give digits; `precise` gives the unscaled
 * number as big-endian two's complement in base64, with the scale in the schema or, if the column has none, beside it.
 */
final class SourceNumber {
  private static final String DECIMAL = "org.apache.kafka.connect.data.Decimal";
  private static final String VARIABLE_SCALE = "io.debezium.data.VariableScaleDecimal";
  private static final String BITS = "io.debezium.data.Bits";
  private static final Pattern SCALE = Pattern.compile("\"scale\"\\s*:\\s*(-?\\d{1,5})\\b");
  private static final Pattern VALUE = Pattern.compile("\"value\"\\s*:\\s*\"([A-Za-z0-9+/=]*)\"");
  private static final Pattern PAIR = Pattern.compile("\\{\"scale\":-?\\d{1,5},\"value\":\"[A-Za-z0-9+/]+={0,2}\"}");
  private static final int LONGEST = 400;
  private static final int LARGEST_EXPONENT = 400;

  private SourceNumber() {}

  static boolean isDecimal(DeclaredType declared) {
    return declared.is(DECIMAL, VARIABLE_SCALE);
  }

  /**
   * Returns whether the text is a decimal with its scale beside it, as the connector writes a column without a scale.
   */
  static boolean isPair(String text) {
    return text.startsWith("{\"scale\":") && text.length() <= LONGEST && PAIR.matcher(text).matches();
  }

  /**
   * Reads the number.
   *
   * @throws IllegalArgumentException if the text is not a number, or has a size that no field could hold
   */
  static BigDecimal read(String text, DeclaredType declared) {
    if (text.length() > LONGEST || declared.is(BITS)) { // the base64 of bits may look like a number
      throw new IllegalArgumentException(text);
    }
    BigDecimal number = declared.is(DECIMAL) ? decimal(text, declared.scale()) : text.startsWith("{") ? pair(text) : new BigDecimal(text);
    if (Math.abs((long) number.scale()) > LARGEST_EXPONENT) {
      throw new IllegalArgumentException(text);
    }
    return number;
  }

  private static BigDecimal pair(String text) {
    Matcher scale = SCALE.matcher(text);
    Matcher value = VALUE.matcher(text);
    if (!scale.find() || !value.find()) {
      throw new IllegalArgumentException(text);
    }
    return decimal(value.group(1), scale.group(1));
  }

  private static BigDecimal decimal(String base64, String scale) {
    return new BigDecimal(new BigInteger(Base64.getDecoder().decode(base64)), Integer.parseInt(scale));
  }
}
