package io.statecast.spark;

import java.io.IOException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF3;

/**
 * `decode_row(bytes, message, descriptors) → struct(row, payload, problem)`: a message that is no change, such as the row
 * of a table. `row` or `problem` is null; `payload` is the bytes of a message that can be read. Null bytes give null.
 */
public final class DecodeRow implements UDF3<byte[], String, byte[], Row> {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  @Override
  public Row call(byte[] value, String message, byte[] descriptors) {
    if (value == null) {
      return null;
    }
    try {
      return RowFactory.create(MessageReader.of(type.resolve(message, descriptors)).read(value), value, null);
    } catch (IOException | UndecodableException e) {
      return RowFactory.create(null, null, "not a %s: %s".formatted(message, e.getMessage()));
    }
  }
}
