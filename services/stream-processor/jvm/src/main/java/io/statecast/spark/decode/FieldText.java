package io.statecast.spark.decode;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.format.DateTimeFormatterBuilder;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;

/** Reads one value of a field from its text in Debezium's JSON. */
final class FieldText {
  private static final String[] DURATIONS = {"io.debezium.time.MicroDuration", "io.debezium.time.NanoDuration"};
  private static final String MOMENT = "a moment between the years 1 and 9999";
  private static final String WITHOUT_UNIT =
      " without a doubt (only the schema says the unit of a count; set schemas.enable=true at the connector's value converter)";
  private static final int LONGEST_SHOWN = 60;
  /** The texts for NaN and infinities, in double columns and in numeric ones. */
  private static final Map<String, Double> NO_NUMBERS =
      Map.of(
          "NaN", Double.NaN, "Infinity", Double.POSITIVE_INFINITY, "-Infinity", Double.NEGATIVE_INFINITY,
          "NAN", Double.NaN, "POSITIVE_INFINITY", Double.POSITIVE_INFINITY, "NEGATIVE_INFINITY", Double.NEGATIVE_INFINITY);

  private FieldText() {}

  /**
   * Returns the value as DynamicMessage takes it.
   *
   * @throws UndecodableException naming the field by its `path`, when the text is not such a value
   */
  static Object read(FieldDescriptor field, String text, DeclaredType declared, String path) {
    try {
      return value(field, text, declared);
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw new UndecodableException("%s is not %s: %s".formatted(path, expected(field, text, declared), shown(text)));
    }
  }

  /** Shortens the text for a reason. */
  static String shown(String text) {
    return text.length() > LONGEST_SHOWN ? text.substring(0, LONGEST_SHOWN) + "…" : text;
  }

  private static Object value(FieldDescriptor field, String text, DeclaredType declared) {
    return switch (field.getType()) {
      case STRING -> string(field, text, declared);
      case BOOL -> bool(text);
      // Accepts both alphabets of base64, because binary.handling.mode selects one.
      case BYTES -> ByteString.copyFrom(Base64.getDecoder().decode(text.replace('-', '+').replace('_', '/')));
      case ENUM -> named(field.getEnumType(), text);
      case MESSAGE, GROUP -> timestamp(field.getMessageType(), SourceTime.read(text, declared));
      case FLOAT -> (float) floating(text, declared, true);
      case DOUBLE -> floating(text, declared, false);
      case INT32, SINT32, SFIXED32 -> SourceNumber.read(text, declared).intValueExact();
      case UINT32, FIXED32 -> Integer.parseUnsignedInt(SourceNumber.read(text, declared).toBigIntegerExact().toString());
      case UINT64, FIXED64 -> Long.parseUnsignedLong(SourceNumber.read(text, declared).toBigIntegerExact().toString());
      default -> SourceNumber.read(text, declared).longValueExact();
    };
  }

  private static String expected(FieldDescriptor field, String text, DeclaredType declared) {
    return switch (field.getType()) {
      case STRING -> expectedAsText(field, declared);
      case ENUM -> "a name in " + field.getEnumType().getFullName();
      case MESSAGE, GROUP -> declared.name() == null && text.matches("-?\\d+") ? MOMENT + WITHOUT_UNIT : MOMENT;
      case BOOL -> "true or false, or 1 or 0";
      case BYTES -> "base64";
      case FLOAT, DOUBLE -> "a number of type " + field.getType().name().toLowerCase(Locale.ROOT);
      default -> "a whole number of type " + field.getType().name().toLowerCase(Locale.ROOT);
    };
  }

  private static String expectedAsText(FieldDescriptor field, DeclaredType declared) {
    DecimalText decimal = DecimalText.of(field);
    if (decimal != null) {
      return "a " + decimal;
    }
    if (declared.is(DURATIONS)) {
      return "an interval as text; set interval.handling.mode=string at the connector";
    }
    return declared.is(SourceTime.TIMES) ? "a time of day" : SourceNumber.isDecimal(declared) ? "a number" : MOMENT;
  }

  /** Converts a column of another type to text: a date, a time and a moment as in RFC 3339, a decimal as its digits. */
  private static String string(FieldDescriptor field, String text, DeclaredType declared) {
    DecimalText decimal = DecimalText.of(field);
    if (decimal != null) {
      return decimal.write(SourceNumber.read(text, declared));
    }
    if (declared.is(SourceTime.DATES) || declared.is(SourceTime.ISO_DATES)) {
      return SourceTime.read(text, declared).toString().substring(0, "2024-08-28".length());
    }
    if (declared.is(SourceTime.COUNTS) || declared.is(SourceTime.ISO_MOMENTS)) {
      return new DateTimeFormatterBuilder().appendInstant(6).toFormatter().format(SourceTime.read(text, declared));
    }
    if (declared.is(SourceTime.TIMES)) {
      return SourceTime.ofDay(text, declared);
    }
    if (declared.is(DURATIONS)) {
      throw new IllegalArgumentException(text); // months were counted as days, so the interval is lost
    }
    boolean isNumber = SourceNumber.isDecimal(declared) || SourceNumber.isPair(text);
    return isNumber ? SourceNumber.read(text, declared).toPlainString() : text;
  }

  private static boolean bool(String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "true", "1" -> true; // a TINYINT(1) is a number
      case "false", "0" -> false;
      default -> throw new IllegalArgumentException(text);
    };
  }

  /** Returns the nearest number of the type; refuses one that would become infinity or zero, such as 1E400. */
  private static double floating(String text, DeclaredType declared, boolean isFloat) {
    Double noNumber = NO_NUMBERS.get(text);
    if (noNumber != null) {
      return noNumber;
    }
    BigDecimal number = SourceNumber.read(text, declared);
    double value = isFloat ? Float.parseFloat(number.toString()) : Double.parseDouble(number.toString());
    if (Double.isInfinite(value) || value == 0 && number.signum() != 0) {
      throw new IllegalArgumentException(text);
    }
    return value;
  }

  /** Finds a value by its name in any case, with or without the prefix that the enum's names begin with. */
  private static EnumValueDescriptor named(EnumDescriptor type, String text) {
    String wanted = text.toUpperCase(Locale.ROOT);
    String prefix = type.getName().replaceAll("([a-z0-9])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT) + "_";
    EnumValueDescriptor value = type.findValueByName(wanted);
    value = value == null ? type.findValueByName(prefix + wanted) : value;
    if (value == null) {
      throw new IllegalArgumentException(text);
    }
    return value;
  }

  private static DynamicMessage timestamp(Descriptor type, Instant instant) {
    return DynamicMessage.newBuilder(type)
        .setField(type.getFields().get(0), instant.getEpochSecond())
        .setField(type.getFields().get(1), instant.getNano())
        .build();
  }
}
