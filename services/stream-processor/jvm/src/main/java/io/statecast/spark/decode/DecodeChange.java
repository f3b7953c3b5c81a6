package io.statecast.spark.decode;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import org.apache.spark.unsafe.types.ByteArray;

/**
 * Decodes a change: `decode_change(bytes) → struct(row, payload, problem)`. `row` or `problem` is null. Null bytes give
 * null.
 *
 * <p>It works like spark-protobuf's from_protobuf, but gives a reason instead of an exception for a value that it
 * cannot decode, so that the record can go to the dead-letter topic while the query goes on. `payload` has the row
 * `after` as it was received, with the fields that this build's contract does not know; null when there is no row after
 * the change.
 */
public final class DecodeChange extends DecodeRow {
  private static final long serialVersionUID = 1L;

  public DecodeChange(MessageType type) {
    super(type);
  }

  /** Returns the bytes of the field `after`. If it comes twice, they are concatenated, which merges the messages. */
  @Override
  byte[] payload(byte[] value) throws IOException {
    FieldDescriptor after = type.descriptor().findFieldByName("after");
    int wanted = after.getNumber() << 3 | WireFormat.WIRETYPE_LENGTH_DELIMITED;
    CodedInputStream in = CodedInputStream.newInstance(value);
    byte[] row = null;
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      if (tag == wanted) {
        row = row == null ? in.readByteArray() : ByteArray.concat(row, in.readByteArray());
      } else {
        in.skipField(tag);
      }
    }
    return row;
  }
}
