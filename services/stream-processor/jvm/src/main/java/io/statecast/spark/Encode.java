package io.statecast.spark;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF3;

/** `encode(row, message, descriptors) → bytes`, like spark-protobuf's to_protobuf; a null row gives null. */
public final class Encode implements UDF3<Row, String, byte[], byte[]> {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  @Override
  public byte[] call(Row row, String message, byte[] descriptors) {
    return row == null ? null : MessageWriter.of(type.resolve(message, descriptors)).write(row);
  }
}
