package io.statecast.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** `encode(row, message, descriptors) → bytes`, like spark-protobuf's to_protobuf; a null row gives null. */
public final class Encode implements Serializable {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  /** Called by Spark's generated code. */
  public byte[] call(InternalRow row, UTF8String message, byte[] descriptors) {
    return MessageWriter.of(type.resolve(message, descriptors)).write(row);
  }
}
