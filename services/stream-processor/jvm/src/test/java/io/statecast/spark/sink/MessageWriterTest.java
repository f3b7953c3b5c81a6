package io.statecast.spark.sink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumValueDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.OneofDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.TimestampProto;
import io.statecast.spark.decode.MessageReader;
import io.statecast.spark.decode.TestMessages;
import io.statecast.spark.decode.TestRows;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.junit.jupiter.api.Test;

/** Checks that the bytes of any row are those that Protobuf's own builder makes of it, and read as the same row. */
class MessageWriterTest {
  private static final Descriptor KINDS = kinds();

  /** Makes the type `Kinds`: each type of field without presence, with presence and repeated, with falling numbers. */
  private static Descriptor kinds() {
    DescriptorProto.Builder kinds = DescriptorProto.newBuilder().setName("Kinds");
    int number = 200;
    for (Type type : Type.values()) {
      if (type == Type.TYPE_GROUP) {
        continue;
      }
      FieldDescriptorProto.Builder field = FieldDescriptorProto.newBuilder().setType(type).setLabel(Label.LABEL_OPTIONAL);
      if (type == Type.TYPE_ENUM) {
        field.setTypeName(".kinds.Color");
      }
      if (type == Type.TYPE_MESSAGE) {
        FieldDescriptorProto.Builder moment = field.clone().setTypeName(".google.protobuf.Timestamp");
        kinds.addField(moment.clone().setName("at").setNumber(number--));
        kinds.addField(moment.setLabel(Label.LABEL_REPEATED).setName("moments").setNumber(number--));
        kinds.addField(field.setTypeName(".kinds.Kinds").setName("inner").setNumber(number--));
        kinds.addField(field.clone().setLabel(Label.LABEL_REPEATED).setName("inners").setNumber(number--));
        continue;
      }
      kinds.addField(field.clone().setName("one_" + type).setNumber(number--));
      kinds.addField(field.clone().setLabel(Label.LABEL_REPEATED).setName("many_" + type).setNumber(number--));
      if (type == Type.TYPE_STRING) {
        FieldDescriptorProto.Builder price = field.clone().setOptions(TestMessages.decimal(12, 2));
        kinds.addField(price.clone().setName("one_price").setNumber(number--));
        kinds.addField(price.setLabel(Label.LABEL_REPEATED).setName("many_price").setNumber(number--));
      }
      int oneof = kinds.getOneofDeclCount();
      kinds.addOneofDecl(OneofDescriptorProto.newBuilder().setName("_maybe_" + type));
      kinds.addField(field.setName("maybe_" + type).setNumber(number--).setProto3Optional(true).setOneofIndex(oneof));
    }
    EnumDescriptorProto.Builder color = EnumDescriptorProto.newBuilder().setName("Color");
    for (String name : List.of("NONE", "RED")) {
      color.addValue(EnumValueDescriptorProto.newBuilder().setName(name).setNumber(color.getValueCount()));
    }
    FileDescriptorProto file =
        FileDescriptorProto.newBuilder()
            .setName("kinds.proto")
            .setPackage("kinds")
            .setSyntax("proto3")
            .addDependency("google/protobuf/timestamp.proto")
            .addMessageType(kinds)
            .addEnumType(color)
            .build();
    try {
      return FileDescriptor.buildFrom(file, new FileDescriptor[] {TimestampProto.getDescriptor()}).findMessageTypeByName("Kinds");
    } catch (DescriptorValidationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Row row(Random random, int depth) {
    Object[] values = KINDS.getFields().stream().map(field -> field(random, field, depth)).toArray();
    return RowFactory.create(values);
  }

  private static Object field(Random random, FieldDescriptor field, int depth) {
    boolean isKinds = field.getType() == FieldDescriptor.Type.MESSAGE && field.getMessageType().equals(KINDS);
    if (field.isRepeated()) {
      List<Object> values = new ArrayList<>();
      for (int count = isKinds && depth == 0 ? 0 : random.nextInt(4); count > 0; count--) {
        values.add(value(random, field, depth));
      }
      return values;
    }
    boolean isNull = field.hasPresence() && (random.nextBoolean() || isKinds && depth == 0);
    return isNull ? null : value(random, field, depth);
  }

  private static Object value(Random random, FieldDescriptor field, int depth) {
    long number = random.nextInt(3) == 0 ? 0 : random.nextLong() >> random.nextInt(64);
    if (TestMessages.isDecimal(field)) {
      return BigDecimal.valueOf(number % 1_000_000_000_000L, 2);
    }
    return switch (field.getType()) {
      case STRING -> random.nextBoolean() ? "" : "Grüße " + Character.toString(0x1F600 + random.nextInt(50));
      case BYTES -> random.nextBoolean() ? new byte[0] : Long.toString(number).getBytes(StandardCharsets.US_ASCII);
      case ENUM -> random.nextBoolean() ? "NONE" : "RED";
      case BOOL -> random.nextBoolean();
      case INT64, SINT64, SFIXED64 -> number;
      case UINT64, FIXED64 -> new BigDecimal(Long.toUnsignedString(number));
      case INT32, SINT32, SFIXED32 -> (int) number;
      case UINT32, FIXED32 -> number & 0xffff_ffffL;
      case DOUBLE -> random.nextInt(4) == 0 ? -0.0 : (double) number / 3;
      case FLOAT -> random.nextInt(4) == 0 ? -0.0f : (float) number / 3;
      case MESSAGE ->
          field.getMessageType().equals(KINDS)
              ? row(random, depth - 1)
              : random.nextInt(3) == 0 ? Instant.EPOCH : Instant.ofEpochSecond(number >> 30, random.nextInt(1_000_000) * 1_000L);
      case GROUP -> throw new IllegalStateException();
    };
  }

  @Test
  void theBytesAreThoseOfProtobufsOwnBuilder() throws Exception {
    Random random = new Random(1);
    for (int i = 0; i < 3_000; i++) {
      Row row = row(random, 2);

      byte[] written = MessageWriter.of(KINDS).write((InternalRow) TestRows.internal(row));

      assertArrayEquals(OracleMessages.convert(row, KINDS).toByteArray(), written);
      byte[] again = OracleMessages.convert(TestRows.external(MessageReader.of(KINDS).read(written), KINDS), KINDS).toByteArray();
      assertArrayEquals(again, written);
    }
  }

  @Test
  void aMomentThatNoTimestampCanHoldLeavesItsFieldUnset() {
    Instant last = Instant.parse("9999-12-31T23:59:59.999999Z");
    for (Instant beyond : List.of(last.plusNanos(1_000), Instant.parse("0001-01-01T00:00:00Z").minusNanos(1_000))) {
      Object[] values = new Object[KINDS.getFields().size()];
      values[KINDS.findFieldByName("at").getIndex()] = beyond;
      values[KINDS.findFieldByName("moments").getIndex()] = List.of(last, beyond);

      assertEquals(0, MessageWriter.of(KINDS).write(TestRows.row(values)).length);
    }
  }

  @Test
  void aNameThatTheEnumLacksIsTheCallersFault() {
    Object[] values = new Object[KINDS.getFields().size()];
    values[KINDS.findFieldByName("one_TYPE_ENUM").getIndex()] = "BLUE";

    IllegalArgumentException refused =
        assertThrows(IllegalArgumentException.class, () -> MessageWriter.of(KINDS).write(TestRows.row(values)));

    assertEquals("kinds.Color has no value BLUE", refused.getMessage());
  }
}
