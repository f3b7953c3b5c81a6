package io.statecast.spark.sink;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import io.statecast.spark.decode.DecimalText;
import io.statecast.spark.decode.MessageReader;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes one field of messages; looks up the properties of its descriptor once. */
final class FieldWriter {
  private static final int UNSIGNED_DIGITS = 20;

  private final FieldDescriptor field;
  private final FieldDescriptor.Type type;
  /** Null if the field's texts are not decimals. */
  private final DecimalText decimal;
  /** The numbers of an enum's values by their names; empty for another type. */
  private final Map<UTF8String, Integer> numbers;
  private final boolean isTimestamp;
  /** The field's index in its row. */
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
    this.numbers = type == FieldDescriptor.Type.ENUM ? numbers(field) : Map.of();
    this.isTimestamp = type == FieldDescriptor.Type.MESSAGE && MessageReader.isTimestamp(field.getMessageType());
    this.index = field.getIndex();
    this.number = field.getNumber();
    this.wireType = field.getLiteType().getWireType();
    this.isRepeated = field.isRepeated();
    this.isPacked = field.isPacked();
    this.hasPresence = field.hasPresence();
  }

  /** Writes the row's value of the field; nothing for null, or for the zero of a field without presence. */
  void write(InternalRow row, MessageBytes out) {
    if (row.isNullAt(index)) {
      return;
    }
    // A moment that is too far away for a Timestamp leaves its field unset, like all that an expression cannot compute.
    if (isRepeated) {
      ArrayData values = row.getArray(index);
      if (!isTimestamp || IntStream.range(0, values.numElements()).allMatch(at -> isValid(values, at))) {
        writeAll(values, out);
      }
    } else if (isTimestamp ? isValid(row, index) : hasPresence || !isZero(row)) {
      writeField(row, index, out);
    }
  }

  private static boolean isValid(SpecializedGetters moments, int at) {
    return MessageReader.isValid(Math.floorDiv(moments.getLong(at), 1_000_000L));
  }

  private void writeAll(ArrayData values, MessageBytes out) {
    int count = values.numElements();
    if (!isPacked) {
      for (int i = 0; i < count; i++) {
        writeField(values, i, out);
      }
    } else if (count > 0) {
      int begin = out.begin(number);
      for (int i = 0; i < count; i++) {
        writeValue(values, i, out);
      }
      out.end(begin);
    }
  }

  private void writeField(SpecializedGetters values, int at, MessageBytes out) {
    if (type == FieldDescriptor.Type.MESSAGE) {
      int begin = out.begin(number);
      writeMessage(values, at, out);
      out.end(begin);
    } else {
      out.tag(number, wireType);
      writeValue(values, at, out);
    }
  }

  private void writeValue(SpecializedGetters values, int at, MessageBytes out) {
    switch (type) {
      case STRING -> out.text(text(values, at));
      case BYTES -> out.bytes(values.getBinary(at));
      case ENUM -> out.varint(numberOf(values.getUTF8String(at)));
      case BOOL -> out.varint(values.getBoolean(at) ? 1 : 0);
      case INT64 -> out.varint(values.getLong(at));
      case UINT32 -> out.varint(values.getLong(at) & 0xffff_ffffL);
      case SINT64 -> out.varint(CodedOutputStream.encodeZigZag64(values.getLong(at)));
      case SFIXED64 -> out.fixed64(values.getLong(at));
      case UINT64 -> out.varint(unsigned(values, at));
      case FIXED64 -> out.fixed64(unsigned(values, at));
      case INT32 -> out.varint(values.getInt(at));
      case SINT32 -> out.varint(Integer.toUnsignedLong(CodedOutputStream.encodeZigZag32(values.getInt(at))));
      case SFIXED32 -> out.fixed32(values.getInt(at));
      case FIXED32 -> out.fixed32((int) values.getLong(at));
      case DOUBLE -> out.fixed64(Double.doubleToRawLongBits(values.getDouble(at)));
      case FLOAT -> out.fixed32(Float.floatToRawIntBits(values.getFloat(at)));
      case MESSAGE, GROUP -> throw new IllegalArgumentException(field.getFullName() + " is a group");
    }
  }

  private void writeMessage(SpecializedGetters values, int at, MessageBytes out) {
    if (!isTimestamp) {
      MessageWriter writer = messageWriter();
      writer.write(values.getStruct(at, writer.size()), out);
      return;
    }
    long microseconds = values.getLong(at);
    long seconds = Math.floorDiv(microseconds, 1_000_000L);
    long nanos = Math.floorMod(microseconds, 1_000_000L) * 1_000;
    if (seconds != 0) {
      out.tag(1, 0);
      out.varint(seconds);
    }
    if (nanos != 0) {
      out.tag(2, 0);
      out.varint(nanos);
    }
  }

  /** Returns whether the row's value, which is not null, equals that of an unset field. */
  private boolean isZero(InternalRow row) {
    return switch (type) {
      case STRING -> decimal == null && row.getUTF8String(index).numBytes() == 0;
      case BYTES -> row.getBinary(index).length == 0;
      case ENUM -> numberOf(row.getUTF8String(index)) == 0;
      case BOOL -> !row.getBoolean(index);
      // Of the two floating-point zeros, only the positive one equals it.
      case DOUBLE -> Double.doubleToRawLongBits(row.getDouble(index)) == 0;
      case FLOAT -> Float.floatToRawIntBits(row.getFloat(index)) == 0;
      case UINT64, FIXED64 -> unsigned(row, index) == 0;
      case INT32, SINT32, SFIXED32 -> row.getInt(index) == 0;
      default -> row.getLong(index) == 0;
    };
  }

  private UTF8String text(SpecializedGetters values, int at) {
    if (decimal == null) {
      return values.getUTF8String(at);
    }
    return UTF8String.fromString(
        decimal.write(values.getDecimal(at, decimal.precision(), decimal.scale()).toJavaBigDecimal()));
  }

  private static long unsigned(SpecializedGetters values, int at) {
    return values.getDecimal(at, UNSIGNED_DIGITS, 0).toJavaBigDecimal().longValue();
  }

  private static Map<UTF8String, Integer> numbers(FieldDescriptor field) {
    return field.getEnumType().getValues().stream()
        .collect(
            Collectors.toMap(each -> UTF8String.fromString(each.getName()), EnumValueDescriptor::getNumber));
  }

  private int numberOf(UTF8String name) {
    Integer number = numbers.get(name);
    if (number == null) {
      throw new IllegalArgumentException("%s has no value %s".formatted(field.getEnumType().getFullName(), name));
    }
    return number;
  }

  /** Returns the writer of the field's messages; looks it up late, because types may refer to each other. */
  private MessageWriter messageWriter() {
    if (messageWriter == null) {
      messageWriter = MessageWriter.of(field.getMessageType());
    }
    return messageWriter;
  }
}
