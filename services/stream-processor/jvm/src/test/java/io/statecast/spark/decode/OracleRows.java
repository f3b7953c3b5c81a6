package io.statecast.spark.decode;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * Makes the rows that {@link MessageReader} must make of bytes, by Protobuf's own parser.
 *
 * <p>Types are those of spark-protobuf: an enum is its value's name, a Timestamp an Instant (microseconds), a message a
 * row, a repeated field a list, an unset field with presence null.
 */
final class OracleRows {
  /** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the bounds that timestamp.proto sets. */
  private static final long FIRST_SECOND = -62_135_596_800L;

  private static final long LAST_SECOND = 253_402_300_799L;

  private OracleRows() {}

  /** Returns the text of a test.All's row; null if the bytes cannot be read. */
  static String read(byte[] value) {
    try {
      return text(convert(DynamicMessage.parseFrom(TestMessages.all(), value)));
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return null;
    }
  }

  /** Returns the text of all values of a row, bytes included. */
  static String text(Row row) {
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < row.size(); i++) {
      values.add(row.get(i) instanceof byte[] bytes ? Arrays.toString(bytes) : row.get(i));
    }
    return values.toString();
  }

  private static Row convert(Message message) {
    List<FieldDescriptor> fields = message.getDescriptorForType().getFields();
    Object[] values = new Object[fields.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = field(message, fields.get(i));
    }
    return RowFactory.create(values);
  }

  private static Object field(Message message, FieldDescriptor field) {
    if (field.isRepeated()) {
      List<?> elements = (List<?>) message.getField(field);
      List<Object> values = new ArrayList<>(elements.size());
      elements.forEach(element -> values.add(value(field, element)));
      return values;
    }
    boolean isEmpty = TestMessages.isDecimal(field) && message.getField(field).equals("");
    return (field.hasPresence() || isEmpty) && !message.hasField(field) ? null : value(field, message.getField(field));
  }

  private static Object value(FieldDescriptor field, Object value) {
    if (TestMessages.isDecimal(field)) {
      return decimal((String) value);
    }
    return switch (field.getType()) {
      case MESSAGE, GROUP -> MessageReader.isTimestamp(field.getMessageType()) ? instant(field, (Message) value) : convert((Message) value);
      case ENUM -> name(field, (EnumValueDescriptor) value);
      case BYTES -> ((ByteString) value).toByteArray();
      case UINT32, FIXED32 -> Integer.toUnsignedLong((Integer) value);
      case UINT64, FIXED64 -> new BigDecimal(Long.toUnsignedString((Long) value));
      default -> value;
    };
  }

  private static BigDecimal decimal(String text) {
    if (!text.matches("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?")) {
      throw new UndecodableException(text);
    }
    try {
      BigDecimal number = new BigDecimal(text).setScale(2);
      if (number.abs().compareTo(BigDecimal.valueOf(10_000_000_000L)) < 0) {
        return number;
      }
    } catch (ArithmeticException | NumberFormatException e) {
      throw new UndecodableException(text);
    }
    throw new UndecodableException(text);
  }

  private static String name(FieldDescriptor field, EnumValueDescriptor value) {
    if (value.getIndex() < 0) {
      throw new UndecodableException(
          "%s: %s has no value %d".formatted(field.getFullName(), field.getEnumType().getFullName(), value.getNumber()));
    }
    return value.getName();
  }

  private static Instant instant(FieldDescriptor field, Message timestamp) {
    List<FieldDescriptor> fields = timestamp.getDescriptorForType().getFields();
    long seconds = (Long) timestamp.getField(fields.get(0));
    int nanos = (Integer) timestamp.getField(fields.get(1));
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos > 999_999_999) {
      throw new UndecodableException("%s: %d s %d ns is no valid Timestamp".formatted(field.getFullName(), seconds, nanos));
    }
    return Instant.ofEpochSecond(seconds, nanos / 1_000 * 1_000);
  }
}
