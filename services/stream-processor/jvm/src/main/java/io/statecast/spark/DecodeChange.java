package io.statecast.spark;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF3;

/**
 * `decode_change(bytes, message, descriptors) → struct(row, payload, problem)`: {@link Decode} of a change.
 *
 * <p>`payload` is the change's row `after` as it was received, with the fields that this build's contract does not know;
 * null when there is no row after the change.
 */
public final class DecodeChange implements UDF3<byte[], String, byte[], Row> {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  @Override
  public Row call(byte[] value, String message, byte[] descriptors) {
    if (value == null) {
      return problem("the value is null");
    }
    try {
      DynamicMessage change = Decode.parse(type.resolve(message, descriptors), value);
      return RowFactory.create(MessageToRow.convert(change), payload(change), null);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return problem(Decode.reason(message, e));
    }
  }

  private static byte[] payload(Message change) {
    FieldDescriptor after = change.getDescriptorForType().findFieldByName("after");
    return change.hasField(after) ? ((Message) change.getField(after)).toByteArray() : null;
  }

  private static Row problem(String reason) {
    return RowFactory.create(null, null, reason);
  }
}
