package io.statecast.spark.decode;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads one field of messages; looks up the properties of its descriptor once. */
final class FieldReader {
  private static final int[] NONE = {};
  private static final int UNSIGNED_DIGITS = 20;

  final FieldDescriptor field;
  /** The field's index in its row. */
  final int index;
  final int wireType;
  final boolean packable;
  final boolean isMessage;
  final boolean isRepeated;
  /** The indices of the fields that this one replaces: the others of its oneof. */
  final int[] alternatives;
  private final FieldDescriptor.Type type;
  /** Null if the field's texts are not decimals. */
  private final DecimalText decimal;
  /** The names of an enum's values by their numbers; empty for another type. */
  private final Map<Integer, UTF8String> names;
  private final boolean isRequired;
  private final Object unset;
  private MessageReader messageReader;

  FieldReader(FieldDescriptor field) {
    this.field = field;
    this.index = field.getIndex();
    this.type = field.getType();
    this.decimal = DecimalText.of(field);
    this.wireType = field.getLiteType().getWireType();
    this.packable = field.isPackable();
    this.isMessage = type == FieldDescriptor.Type.MESSAGE;
    this.isRepeated = field.isRepeated();
    this.names = type == FieldDescriptor.Type.ENUM ? names(field.getEnumType()) : Map.of();
    this.isRequired = field.isRequired();
    this.unset = isRepeated ? new GenericArrayData(new Object[0]) : field.hasPresence() ? null : zero();
    OneofDescriptor oneof = field.getRealContainingOneof();
    this.alternatives =
        oneof == null
            ? NONE
            : oneof.getFields().stream().filter(each -> each != field).mapToInt(FieldDescriptor::getIndex).toArray();
  }

  /** Returns the reader of the field's messages; looks it up late, because types may refer to each other. */
  MessageReader messageReader() {
    if (messageReader == null) {
      messageReader = MessageReader.of(field.getMessageType());
    }
    return messageReader;
  }

  /** Returns the row's value for a field that its message lacks. Throws UndecodableException if it is required. */
  Object unset() {
    if (isRequired) {
      throw new UndecodableException(field.getFullName() + " is required");
    }
    return unset;
  }

  /**
   * Reads the next value, which is not a message; an enum as its number, because a later one may replace it.
   *
   * @throws InvalidProtocolBufferException if the bytes are not such a value
   */
  Object read(CodedInputStream in) throws IOException {
    return switch (type) {
      case STRING -> text(in.readByteArray());
      case BYTES -> in.readByteArray();
      case ENUM -> in.readEnum();
      case BOOL -> in.readBool();
      case INT64 -> in.readInt64();
      case SINT64 -> in.readSInt64();
      case SFIXED64 -> in.readSFixed64();
      case UINT64, FIXED64 -> unsigned(type == FieldDescriptor.Type.UINT64 ? in.readUInt64() : in.readFixed64());
      case INT32 -> in.readInt32();
      case SINT32 -> in.readSInt32();
      case SFIXED32 -> in.readSFixed32();
      case UINT32 -> Integer.toUnsignedLong(in.readUInt32());
      case FIXED32 -> Integer.toUnsignedLong(in.readFixed32());
      case DOUBLE -> in.readDouble();
      case FLOAT -> in.readFloat();
      case MESSAGE, GROUP -> throw new InvalidProtocolBufferException(field.getFullName() + " is a group");
    };
  }

  private static UTF8String text(byte[] bytes) throws InvalidProtocolBufferException {
    UTF8String text = UTF8String.fromBytes(bytes);
    if (!isAscii(bytes) && !text.isValid()) {
      throw new InvalidProtocolBufferException("Protocol message had invalid UTF-8.");
    }
    return text;
  }

  private static boolean isAscii(byte[] bytes) {
    for (byte each : bytes) {
      if (each < 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Converts a value from the form in which it was read to that of the row.
   *
   * @throws UndecodableException for an enum number without a name, and for a text that is not the field's decimal
   */
  Object finish(Object value) {
    if (value instanceof Object[] message) {
      return messageReader().finish(field, message);
    }
    if (value instanceof List<?> values) {
      // Each message was finished after it was read.
      return new GenericArrayData(isMessage ? values.toArray() : values.stream().map(this::converted).toArray());
    }
    // Without presence, an empty text is the same as an unset one.
    return decimal != null && !field.hasPresence() && ((UTF8String) value).numBytes() == 0 ? unset : converted(value);
  }

  private Object converted(Object value) {
    if (decimal != null) {
      return number(value.toString());
    }
    return type == FieldDescriptor.Type.ENUM ? name((Integer) value) : value;
  }

  private Decimal number(String text) {
    try {
      return Decimal.apply(decimal.read(text), decimal.precision(), decimal.scale());
    } catch (IllegalArgumentException e) {
      throw new UndecodableException(
          "%s is not a %s: %s".formatted(field.getFullName(), decimal, FieldText.shown(text)));
    }
  }

  private Object zero() {
    return switch (type) {
      case STRING -> decimal == null ? UTF8String.EMPTY_UTF8 : null;
      case BYTES -> new byte[0];
      case ENUM -> name(0);
      case BOOL -> false;
      case INT64, SINT64, SFIXED64, UINT32, FIXED32 -> 0L;
      case UINT64, FIXED64 -> unsigned(0);
      case INT32, SINT32, SFIXED32 -> 0;
      case DOUBLE -> 0.0;
      case FLOAT -> 0.0f;
      case MESSAGE, GROUP -> null;
    };
  }

  private static Map<Integer, UTF8String> names(EnumDescriptor type) {
    return type.getValues().stream()
        .collect(
            Collectors.toMap(
                EnumValueDescriptor::getNumber, each -> UTF8String.fromString(each.getName()), (first, alias) -> first));
  }

  private UTF8String name(int number) {
    UTF8String name = names.get(number);
    if (name == null) {
      throw new UndecodableException(
          "%s: %s has no value %d".formatted(field.getFullName(), field.getEnumType().getFullName(), number));
    }
    return name;
  }

  private static Decimal unsigned(long value) {
    BigDecimal number = value >= 0 ? BigDecimal.valueOf(value) : new BigDecimal(Long.toUnsignedString(value));
    return Decimal.apply(number, UNSIGNED_DIGITS, 0);
  }
}
