package io.statecast.spark.decode;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;

/**
 * Reads and writes the texts of a field that are decimals, by the contract's option statecast.change.v1.decimal.
 *
 * <p>A value has exactly `scale` digits after the point, and so has its text. Nothing is ever rounded.
 */
public record DecimalText(int precision, int scale) {
  /** The option's number in google.protobuf.FieldOptions. Descriptors are parsed without it, as an unknown field. */
  private static final int OPTION = 73451;

  private static final int PRECISION = 1;
  private static final int SCALE = 2;
  private static final int LONGEST = 400;
  private static final int LARGEST_EXPONENT = 400;

  /** Returns the type of the field's texts; null if they are not decimals. */
  public static DecimalText of(FieldDescriptor field) {
    List<ByteString> option = field.getOptions().getUnknownFields().getField(OPTION).getLengthDelimitedList();
    if (option.isEmpty()) {
      return null;
    }
    // As in any message, several parts are merged, and the last value of a field counts.
    CodedInputStream in = ByteString.copyFrom(option).newCodedInput();
    int precision = 0;
    int scale = 0;
    try {
      for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
        switch (tag >>> 3) {
          case PRECISION -> precision = in.readInt32();
          case SCALE -> scale = in.readInt32();
          default -> in.skipField(tag);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new DecimalText(precision, scale);
  }

  /**
   * Reads the decimal from a number in ASCII, in any notation.
   *
   * @throws IllegalArgumentException if the text is not a number, or does not fit
   */
  BigDecimal read(String text) {
    if (text.length() > LONGEST || text.chars().anyMatch(sign -> sign > 'e')) {
      throw new IllegalArgumentException(text);
    }
    return fitted(new BigDecimal(text));
  }

  /**
   * Returns the number as a decimal of this field.
   *
   * @throws IllegalArgumentException if it has too many digits, before or after the point
   */
  BigDecimal fitted(BigDecimal number) {
    if (number.signum() == 0) {
      return BigDecimal.ZERO.setScale(scale);
    }
    if (number.scale() == scale && number.precision() <= precision) {
      return number;
    }
    // Counts digits before writing them out, because an exponent may stand for any number of them.
    BigDecimal plain = Math.abs((long) number.scale()) > LARGEST_EXPONENT ? number : number.stripTrailingZeros();
    if (plain.scale() > scale || (long) plain.precision() - plain.scale() > precision - scale) {
      throw new IllegalArgumentException(number.toString());
    }
    return plain.setScale(scale, RoundingMode.UNNECESSARY);
  }

  /** Returns the text of a number that fits, with exactly `scale` digits after the point. */
  public String write(BigDecimal number) {
    return fitted(number).toPlainString();
  }

  /** Returns the type's name in SQL. */
  @Override
  public String toString() {
    return "decimal(%d,%d)".formatted(precision, scale);
  }
}
