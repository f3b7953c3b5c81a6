package io.statecast.spark;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.WireFormat;
import java.io.IOException;

/**
 * Refuses bytes that would become more messages than fit into memory.
 *
 * <p>An empty message takes two bytes in a record and some hundred on the heap: a record of a few megabytes could end the
 * JVM, again after each start. Only large records are looked through.
 */
final class MessageCount {
  static final int LOOKED_THROUGH_FROM_BYTES = 1 << 16;
  static final int LARGEST = 500_000;
  /** Where the parser gives up, too. */
  private static final int DEEPEST = 100;

  private int count;

  private MessageCount() {}

  /**
   * Counts the values that a parser would make.
   *
   * @throws UndecodableException if they are more than {@link #LARGEST}
   */
  static void check(Descriptor type, byte[] value) {
    if (value.length < LOOKED_THROUGH_FROM_BYTES) {
      return;
    }
    try {
      new MessageCount().count(type, CodedInputStream.newInstance(value), 0);
    } catch (IOException e) {
      // The parser, which stops at the same place, gives the reason.
    }
  }

  /** Up to the end of the bytes, or of the group; `type` is null within what the contract does not know. */
  private void count(Descriptor type, CodedInputStream in, int depth) throws IOException {
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      if (++count > LARGEST) {
        throw new UndecodableException("it holds more than %,d values".formatted(LARGEST));
      }
      FieldDescriptor field = type == null ? null : type.findFieldByNumber(WireFormat.getTagFieldNumber(tag));
      int wireType = WireFormat.getTagWireType(tag);
      if (wireType == WireFormat.WIRETYPE_END_GROUP || depth > DEEPEST) {
        return;
      }
      if (wireType == WireFormat.WIRETYPE_START_GROUP) {
        count(null, in, depth + 1);
      } else if (field != null && isMessage(field, wireType)) {
        int end = in.pushLimit(in.readRawVarint32());
        count(field.getMessageType(), in, depth + 1);
        in.popLimit(end);
      } else {
        in.skipField(tag);
      }
    }
  }

  private static boolean isMessage(FieldDescriptor field, int wireType) {
    return field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED;
  }
}
