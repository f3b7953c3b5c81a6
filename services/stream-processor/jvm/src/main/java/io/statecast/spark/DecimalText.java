package io.statecast.spark;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;

/**
 * The texts of a field that are decimals, as the option statecast.change.v1.decimal of the contract says.
 *
 * <p>A value has exactly `scale` digits behind the point, and so has its text. Nothing is ever rounded.
 */
record DecimalText(int precision, int scale) {
  /** Of the option in google.protobuf.FieldOptions. Descriptors are parsed without it, as a field that nobody knows. */
  private static final int OPTION = 73451;

  private static final int PRECISION = 1;
  private static final int SCALE = 2;
  private static final int LONGEST = 400;
  private static final int LARGEST_EXPONENT = 400;

  /** What the field's texts are; null where they are no decimals. */
  static DecimalText of(FieldDescriptor field) {
    List<ByteString> option = field.getOptions().getUnknownFields().getField(OPTION).getLengthDelimitedList();
    if (option.isEmpty()) {
      return null;
    }
    // As for any message: what stands in several parts is one, and the last value of a field counts.
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
   * The decimal that a text stands for, in any form of a number in ASCII.
   *
   * @throws IllegalArgumentException if it is none, or does not fit
   */
  BigDecimal read(String text) {
    if (text.length() > LONGEST || text.chars().anyMatch(sign -> sign > 'e')) {
      throw new IllegalArgumentException(text);
    }
    return fitted(new BigDecimal(text));
  }

  /**
   * The number as a decimal of this field.
   *
   * @throws IllegalArgumentException if it has more digits, before the point or behind it
   */
  BigDecimal fitted(BigDecimal number) {
    if (number.signum() == 0) {
      return BigDecimal.ZERO.setScale(scale);
    }
    if (number.scale() == scale && number.precision() <= precision) {
      return number;
    }
    // Digits are counted before they are written out: an exponent may stand for any number of them.
    BigDecimal plain = Math.abs((long) number.scale()) > LARGEST_EXPONENT ? number : number.stripTrailingZeros();
    if (plain.scale() > scale || (long) plain.precision() - plain.scale() > precision - scale) {
      throw new IllegalArgumentException(number.toString());
    }
    return plain.setScale(scale, RoundingMode.UNNECESSARY);
  }

  /** The text of a number that fits: its digits, with exactly `scale` of them behind the point. */
  String write(BigDecimal number) {
    return fitted(number).toPlainString();
  }

  /** As SQL calls it. */
  @Override
  public String toString() {
    return "decimal(%d,%d)".formatted(precision, scale);
  }
}
