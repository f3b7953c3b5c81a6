package io.statecast.spark;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.math.BigDecimal;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.List;
import org.apache.spark.sql.Row;

/** How one field is written: what is worth knowing of its descriptor, asked for once. */
final class FieldWriter {
  private final FieldDescriptor field;
  private final FieldDescriptor.Type type;
  /** Null of a field whose texts are no decimals. */
  private final DecimalText decimal;
  /** Of the field in its row. */
  private final int index;
  private final int number;
  private final int wireType;
  private final boolean isRepeated;
  private final boolean isPacked;
  private final boolean hasPresence;
  private MessageWriter messageWriter;

  FieldWriter(FieldDescriptor field) {
    this.field = field;
    this.type = field.getType();
    this.decimal = DecimalText.of(field);
    this.index = field.getIndex();
    this.number = field.getNumber();
    this.wireType = field.getLiteType().getWireType();
    this.isRepeated = field.isRepeated();
    this.isPacked = field.isPacked();
    this.hasPresence = field.hasPresence();
  }

  /** Writes what the row holds of the field: nothing for a null, nor for a zero that says no more than that. */
  void write(Row row, CodedOutputStream out) throws IOException {
    if (row.isNullAt(index)) {
      return;
    }
    if (isRepeated) {
      writeAll(row.getList(index), out);
      return;
    }
    Object value = row.get(index);
    if (value instanceof Instant time && !MessageReader.isValid(time)) {
      return; // No Timestamp can be so far away: it is unset, as all that an expression cannot compute.
    }
    if (hasPresence || !isZero(value)) {
      out.writeTag(number, wireType);
      writeValue(value, out);
    }
  }

  private void writeAll(List<?> values, CodedOutputStream out) throws IOException {
    if (!isPacked) {
      for (Object value : values) {
        out.writeTag(number, wireType);
        writeValue(value, out);
      }
    } else if (!values.isEmpty()) {
      out.writeTag(number, WireFormat.WIRETYPE_LENGTH_DELIMITED);
      out.writeByteArrayNoTag(
          MessageWriter.bytes(
              packed -> {
                for (Object value : values) {
                  writeValue(value, packed);
                }
              }));
    }
  }

  private void writeValue(Object value, CodedOutputStream out) throws IOException {
    switch (type) {
      case STRING -> out.writeStringNoTag(decimal == null ? (String) value : decimal.write((BigDecimal) value));
      case BYTES -> out.writeByteArrayNoTag((byte[]) value);
      case ENUM -> out.writeEnumNoTag(numberOf((String) value));
      case BOOL -> out.writeBoolNoTag((Boolean) value);
      case INT64 -> out.writeInt64NoTag((Long) value);
      case SINT64 -> out.writeSInt64NoTag((Long) value);
      case SFIXED64 -> out.writeSFixed64NoTag((Long) value);
      case UINT64 -> out.writeUInt64NoTag(((BigDecimal) value).longValue());
      case FIXED64 -> out.writeFixed64NoTag(((BigDecimal) value).longValue());
      case INT32 -> out.writeInt32NoTag((Integer) value);
      case SINT32 -> out.writeSInt32NoTag((Integer) value);
      case SFIXED32 -> out.writeSFixed32NoTag((Integer) value);
      case UINT32 -> out.writeUInt32NoTag(((Long) value).intValue());
      case FIXED32 -> out.writeFixed32NoTag(((Long) value).intValue());
      case DOUBLE -> out.writeDoubleNoTag((Double) value);
      case FLOAT -> out.writeFloatNoTag((Float) value);
      case MESSAGE -> out.writeByteArrayNoTag(message(value));
      case GROUP -> throw new IllegalArgumentException(field.getFullName() + " is a group");
    }
  }

  private boolean isZero(Object value) {
    return switch (type) {
      case STRING -> decimal == null && ((String) value).isEmpty();
      case BYTES -> ((byte[]) value).length == 0;
      case ENUM -> numberOf((String) value) == 0;
      case BOOL -> !(Boolean) value;
      // Of the two zeros of a floating point number only the positive one is what an unset field stands for.
      case DOUBLE -> value.equals(0.0);
      case FLOAT -> value.equals(0.0f);
      case UINT64, FIXED64 -> ((BigDecimal) value).signum() == 0;
      default -> ((Number) value).longValue() == 0;
    };
  }

  private int numberOf(String name) {
    EnumValueDescriptor value = field.getEnumType().findValueByName(name);
    if (value == null) {
      throw new IllegalArgumentException("%s has no value %s".formatted(field.getEnumType().getFullName(), name));
    }
    return value.getNumber();
  }

  private byte[] message(Object value) {
    if (value instanceof Row row) {
      return messageWriter().write(row);
    }
    // Spark gives an Instant or a java.sql.Timestamp, as spark.sql.datetime.java8API.enabled says.
    Instant instant = value instanceof Timestamp timestamp ? timestamp.toInstant() : (Instant) value;
    return MessageWriter.bytes(
        out -> {
          if (instant.getEpochSecond() != 0) {
            out.writeInt64(1, instant.getEpochSecond());
          }
          if (instant.getNano() != 0) {
            out.writeInt32(2, instant.getNano());
          }
        });
  }

  /** Looked up late: types may refer to each other. */
  private MessageWriter messageWriter() {
    if (messageWriter == null) {
      messageWriter = MessageWriter.of(field.getMessageType());
    }
    return messageWriter;
  }
}
