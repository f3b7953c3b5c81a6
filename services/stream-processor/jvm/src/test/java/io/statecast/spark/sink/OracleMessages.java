package io.statecast.spark.sink;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import io.statecast.spark.decode.MessageReader;
import io.statecast.spark.decode.TestMessages;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import org.apache.spark.sql.Row;

/** Makes the messages that {@link MessageWriter} must write from rows, by Protobuf's own builder. */
final class OracleMessages {
  private OracleMessages() {}

  /**
   * Makes the message of a row. A null leaves its field unset.
   *
   * @throws IllegalArgumentException if the row has another number of fields or an enum has no such name
   */
  static DynamicMessage convert(Row row, Descriptor type) {
    List<FieldDescriptor> fields = type.getFields();
    if (row.size() != fields.size()) {
      throw new IllegalArgumentException(
          "%s has %d fields, the row has %d".formatted(type.getFullName(), fields.size(), row.size()));
    }
    DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
    for (int i = 0; i < fields.size(); i++) {
      if (!row.isNullAt(i)) {
        set(message, fields.get(i), row, i);
      }
    }
    return message.build();
  }

  private static void set(DynamicMessage.Builder message, FieldDescriptor field, Row row, int i) {
    if (!field.isRepeated()) {
      message.setField(field, value(field, row.get(i)));
      return;
    }
    for (Object element : (List<?>) row.get(i)) {
      message.addRepeatedField(field, value(field, element));
    }
  }

  private static Object value(FieldDescriptor field, Object value) {
    if (TestMessages.isDecimal(field)) {
      return ((BigDecimal) value).setScale(2).toPlainString();
    }
    return switch (field.getType()) {
      case MESSAGE, GROUP -> message(field.getMessageType(), value);
      case ENUM -> named(field, (String) value);
      case BYTES -> ByteString.copyFrom((byte[]) value);
      case UINT32, FIXED32 -> ((Long) value).intValue();
      case UINT64, FIXED64 -> ((BigDecimal) value).longValue();
      default -> value;
    };
  }

  private static Message message(Descriptor type, Object value) {
    return MessageReader.isTimestamp(type) ? timestamp(type, (Instant) value) : convert((Row) value, type);
  }

  private static EnumValueDescriptor named(FieldDescriptor field, String name) {
    EnumValueDescriptor value = field.getEnumType().findValueByName(name);
    if (value == null) {
      throw new IllegalArgumentException("%s has no value %s".formatted(field.getEnumType().getFullName(), name));
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
