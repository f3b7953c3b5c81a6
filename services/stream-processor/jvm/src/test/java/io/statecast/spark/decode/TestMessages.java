package io.statecast.spark.decode;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumValueDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FieldOptions;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.UnknownFieldSet;
import io.statecast.spark.sink.Encode;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** Makes messages with every kind of field, from a descriptor set such as Python passes. */
public final class TestMessages {
  static final String ALL = "test.All";
  /** A change of such messages: `before` 3, `after` 4. */
  static final String CHANGE = "test.Change";
  static final DescriptorSet DESCRIPTORS = new DescriptorSet(descriptors());

  private TestMessages() {}

  /** Returns the bytes of a test.All with a value in every field. */
  static byte[] sound() {
    List<Row> lines = List.of(RowFactory.create("item-1"), RowFactory.create("item-2"));
    Object[] values = {
      "text", -7L, 4_294_967_295L, new BigDecimal("18446744073709551615"), new byte[] {0, 1}, "RED", Instant.EPOCH,
      lines, 1, new BigDecimal("12.50"), new BigDecimal("-0.05"),
      List.of(new BigDecimal("9999999999.99"), new BigDecimal("0.00"))
    };
    return encode(values);
  }

  /** Returns the bytes of a test.All with these values. */
  static byte[] encode(Object... values) {
    return new Encode(DESCRIPTORS.type(ALL)).call(TestRows.row(values));
  }

  /** Decodes a test.Change as struct(row, payload, problem). */
  static Row decode(byte[] value) {
    InternalRow decoded = new DecodeChange(DESCRIPTORS.type(CHANGE)).call(value);
    return TestRows.decoded(decoded, DESCRIPTORS.find(CHANGE));
  }

  /** Makes a test.All from these texts, as struct(row, payload, problem). */
  static Row fromTexts(Object[] texts, List<Row> declared) {
    ArrayData types = (ArrayData) TestRows.internal(declared);
    return TestRows.decoded(new RowFromTexts(DESCRIPTORS.type(ALL)).call(TestRows.row(texts), types), all());
  }

  static Descriptor all() {
    return DESCRIPTORS.find(ALL);
  }

  /** Reads a test.All as struct(row, problem), one of them null. */
  static Row read(byte[] value) {
    try {
      return RowFactory.create(TestRows.external(MessageReader.of(all()).read(value), all()), null);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return RowFactory.create(null, e.getMessage());
    }
  }

  /**
   * Returns the option that makes a field's texts decimals, as descriptors hold it that were read without its
   * declaration.
   */
  public static FieldOptions decimal(int precision, int scale) {
    UnknownFieldSet.Builder value =
        UnknownFieldSet.newBuilder()
            .addField(1, UnknownFieldSet.Field.newBuilder().addVarint(precision).build())
            .addField(2, UnknownFieldSet.Field.newBuilder().addVarint(scale).build());
    ByteString bytes = value.build().toByteString();
    UnknownFieldSet.Field option = UnknownFieldSet.Field.newBuilder().addLengthDelimited(bytes).build();
    return FieldOptions.newBuilder().setUnknownFields(UnknownFieldSet.newBuilder().addField(73451, option).build()).build();
  }

  /** Returns whether a field of the tests' messages holds decimals; all have 12 digits, 2 of them after the point. */
  public static boolean isDecimal(FieldDescriptor field) {
    return field.getName().toLowerCase(Locale.ROOT).endsWith("price");
  }

  private static byte[] descriptors() {
    DescriptorProto line = DescriptorProto.newBuilder().setName("Line").addField(field("item", 1, Type.TYPE_STRING)).build();
    FieldDescriptorProto.Builder maybe = field("maybe", 9, Type.TYPE_INT32).toBuilder().setProto3Optional(true).setOneofIndex(0);
    FieldDescriptorProto.Builder price = field("price", 10, Type.TYPE_STRING).toBuilder().setOptions(decimal(12, 2));
    FieldDescriptorProto.Builder maybePrice = price.clone().setName("maybe_price").setNumber(11).setProto3Optional(true).setOneofIndex(1);
    FieldDescriptorProto.Builder prices = price.clone().setName("many_price").setNumber(12).setLabel(Label.LABEL_REPEATED);
    DescriptorProto all =
        DescriptorProto.newBuilder()
            .setName("All")
            .addField(field("text", 1, Type.TYPE_STRING))
            .addField(field("number", 2, Type.TYPE_INT64))
            .addField(field("unsigned", 3, Type.TYPE_UINT32))
            .addField(field("huge", 4, Type.TYPE_UINT64))
            .addField(field("raw", 5, Type.TYPE_BYTES))
            .addField(field("color", 6, Type.TYPE_ENUM).toBuilder().setTypeName(".test.Color"))
            .addField(field("at", 7, Type.TYPE_MESSAGE).toBuilder().setTypeName(".google.protobuf.Timestamp"))
            .addField(field("lines", 8, Type.TYPE_MESSAGE).toBuilder().setTypeName(".test.Line").setLabel(Label.LABEL_REPEATED))
            .addField(maybe)
            .addField(price)
            .addField(maybePrice)
            .addField(prices)
            .addOneofDecl(com.google.protobuf.DescriptorProtos.OneofDescriptorProto.newBuilder().setName("_maybe"))
            .addOneofDecl(com.google.protobuf.DescriptorProtos.OneofDescriptorProto.newBuilder().setName("_maybe_price"))
            .build();
    DescriptorProto change =
        DescriptorProto.newBuilder()
            .setName("Change")
            .addField(field("before", 3, Type.TYPE_MESSAGE).toBuilder().setTypeName(".test.All"))
            .addField(field("after", 4, Type.TYPE_MESSAGE).toBuilder().setTypeName(".test.All"))
            .build();
    EnumDescriptorProto color = EnumDescriptorProto.newBuilder().setName("Color").addValue(named("NONE", 0)).addValue(named("RED", 1)).build();
    FileDescriptorProto file =
        FileDescriptorProto.newBuilder()
            .setName("all.proto")
            .setPackage("test")
            .setSyntax("proto3")
            .addDependency("google/protobuf/timestamp.proto")
            .addMessageType(line)
            .addMessageType(all)
            .addMessageType(change)
            .addEnumType(color)
            .build();
    return FileDescriptorSet.newBuilder().addFile(TimestampProto.getDescriptor().toProto()).addFile(file).build().toByteArray();
  }

  private static FieldDescriptorProto field(String name, int number, Type type) {
    return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type).setLabel(Label.LABEL_OPTIONAL).build();
  }

  private static EnumValueDescriptorProto named(String name, int number) {
    return EnumValueDescriptorProto.newBuilder().setName(name).setNumber(number).build();
  }
}
