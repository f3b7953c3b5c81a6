package io.statecast.spark.tables;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import io.statecast.spark.decode.DescriptorSet;
import io.statecast.spark.decode.MessageType;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Makes the records of a keyed topic of `test.Shop`s. */
public final class TestTable {
  static final String SHOP = "test.Shop";
  static final String TOPIC = "shops";
  private static final DescriptorSet DESCRIPTORS = new DescriptorSet(descriptors());

  private TestTable() {}

  static TableRows rows() {
    return new TableRows(DESCRIPTORS.type(TableRows.STATE_RECORD), DESCRIPTORS.type(SHOP));
  }

  /** Returns the type of the rows, from descriptors that are read anew. */
  public static MessageType shop() {
    return new DescriptorSet(descriptors()).type(SHOP);
  }

  static ConsumerRecord<byte[], byte[]> row(long offset, String key, long epoch, long sequence, String name) {
    Descriptor shop = DESCRIPTORS.type(SHOP).descriptor();
    DynamicMessage row = DynamicMessage.newBuilder(shop).setField(shop.findFieldByName("name"), name).build();
    return value(offset, key, state(epoch, sequence, row.toByteString()));
  }

  static ConsumerRecord<byte[], byte[]> tombstone(long offset, String key, long epoch, long sequence) {
    ConsumerRecord<byte[], byte[]> record = value(offset, key, null);
    record.headers().add(TableRows.TOMBSTONE_HEADER, state(epoch, sequence, ByteString.EMPTY));
    return record;
  }

  static ConsumerRecord<byte[], byte[]> value(long offset, String key, byte[] value) {
    return new ConsumerRecord<>(TOPIC, 0, offset, key == null ? null : key.getBytes(UTF_8), value);
  }

  private static byte[] state(long epoch, long sequence, ByteString payload) {
    Descriptor state = DESCRIPTORS.type(TableRows.STATE_RECORD).descriptor();
    return DynamicMessage.newBuilder(state)
        .setField(state.findFieldByName("epoch"), epoch)
        .setField(state.findFieldByName("sequence"), sequence)
        .setField(state.findFieldByName("payload"), payload)
        .build()
        .toByteArray();
  }

  private static byte[] descriptors() {
    DescriptorProto shop = message("Shop", field("name", 1, Type.TYPE_STRING));
    DescriptorProto state =
        message(
            "StateRecord",
            field("epoch", 1, Type.TYPE_INT64),
            field("sequence", 2, Type.TYPE_INT64),
            field("payload", 4, Type.TYPE_BYTES));
    return FileDescriptorSet.newBuilder()
        .addFile(file("shop.proto", "test", shop))
        .addFile(file("state.proto", "statecast.state.v1", state))
        .build()
        .toByteArray();
  }

  private static FileDescriptorProto file(String name, String inPackage, DescriptorProto message) {
    return FileDescriptorProto.newBuilder().setName(name).setPackage(inPackage).setSyntax("proto3").addMessageType(message).build();
  }

  private static DescriptorProto message(String name, FieldDescriptorProto... fields) {
    return DescriptorProto.newBuilder().setName(name).addAllField(java.util.List.of(fields)).build();
  }

  private static FieldDescriptorProto field(String name, int number, Type type) {
    return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type).setLabel(Label.LABEL_OPTIONAL).build();
  }
}
