package io.statecast.spark.sink;

import io.statecast.spark.decode.MessageType;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;

/** Encodes a row as a message: `encode(row) → bytes`, like spark-protobuf's to_protobuf. A null row gives null. */
public final class Encode implements Serializable {
  private static final long serialVersionUID = 1L;

  private final MessageType type;

  public Encode(MessageType type) {
    this.type = type;
  }

  /** Called by Spark's generated code. */
  public byte[] call(InternalRow row) {
    return MessageWriter.of(type.descriptor()).write(row);
  }
}
