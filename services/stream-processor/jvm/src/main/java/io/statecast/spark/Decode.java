package io.statecast.spark;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF3;

/**
 * `decode(bytes, message, descriptors) → struct(row, problem)`: exactly one of the two is null.
 *
 * <p>Like spark-protobuf's from_protobuf, but a value that cannot be decoded gives its reason in place of an exception, so
 * that it can go to the dead-letter topic while the flow goes on.
 */
public final class Decode implements UDF3<byte[], String, byte[], Row> {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  @Override
  public Row call(byte[] value, String message, byte[] descriptors) {
    if (value == null) {
      return problem("the value is null");
    }
    Descriptor descriptor = type.resolve(message, descriptors);
    try {
      return RowFactory.create(MessageToRow.convert(parse(descriptor, value)), null);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return problem(reason(message, e));
    }
  }

  private static Row problem(String reason) {
    return RowFactory.create(null, reason);
  }

  /**
   * The message in `value`.
   *
   * @throws InvalidProtocolBufferException if the bytes are no such message
   * @throws UndecodableException if they would become too many messages for the heap, see {@link MessageCount}
   */
  static DynamicMessage parse(Descriptor descriptor, byte[] value) throws InvalidProtocolBufferException {
    MessageCount.check(descriptor, value);
    return DynamicMessage.parseFrom(descriptor, value);
  }

  static String reason(String message, Exception problem) {
    return "not a %s: %s".formatted(message, problem.getMessage());
  }
}
