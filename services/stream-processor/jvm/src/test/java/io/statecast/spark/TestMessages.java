package io.statecast.spark;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumValueDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.TimestampProto;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import scala.jdk.javaapi.CollectionConverters;

/** A message with every kind of field, as the descriptor set that Python would hand over. */
final class TestMessages {
  static final String ALL = "test.All";
  /** A change of such messages: `before` 3, `after` 4. */
  static final String CHANGE = "test.Change";
  static final byte[] DESCRIPTORS = descriptors();

  private TestMessages() {}

  /** The bytes of a test.All that holds something in every field. */
  static byte[] sound() {
    List<Row> lines = List.of(RowFactory.create("item-1"), RowFactory.create("item-2"));
    Object[] values = {
      "text", -7L, 4_294_967_295L, new BigDecimal("18446744073709551615"), new byte[] {0, 1}, "RED", Instant.EPOCH,
      CollectionConverters.asScala(lines).toSeq(), 1
    };
    return new Encode().call(RowFactory.create(values), ALL, DESCRIPTORS);
  }

  static Descriptor all() {
    return DescriptorCache.find(DESCRIPTORS, ALL);
  }

  /** What reading a test.All comes to: struct(row, problem), one of them null. */
  static Row read(byte[] value) {
    try {
      return RowFactory.create(MessageReader.of(all()).read(value), null);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return RowFactory.create(null, e.getMessage());
    }
  }

  private static byte[] descriptors() {
    DescriptorProto line = DescriptorProto.newBuilder().setName("Line").addField(field("item", 1, Type.TYPE_STRING)).build();
    FieldDescriptorProto.Builder maybe = field("maybe", 9, Type.TYPE_INT32).toBuilder().setProto3Optional(true).setOneofIndex(0);
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
            .addOneofDecl(com.google.protobuf.DescriptorProtos.OneofDescriptorProto.newBuilder().setName("_maybe"))
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
