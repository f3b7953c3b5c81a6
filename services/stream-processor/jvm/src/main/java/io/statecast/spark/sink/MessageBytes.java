package io.statecast.spark.sink;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.WireFormat;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes the bytes of a message in Protobuf's wire format. */
final class MessageBytes {
  private static final int USUAL_BYTES = 256;
  private static final int LONGEST_VARINT = 10;

  private byte[] bytes = new byte[USUAL_BYTES];
  private int length;

  byte[] toArray() {
    return Arrays.copyOf(bytes, length);
  }

  void tag(int number, int wireType) {
    varint((long) number << 3 | wireType);
  }

  void varint(long value) {
    reserve(LONGEST_VARINT);
    length = put(value, length);
  }

  void fixed32(int value) {
    fixed(value, Integer.BYTES);
  }

  void fixed64(long value) {
    fixed(value, Long.BYTES);
  }

  void text(UTF8String value) {
    int size = value.numBytes();
    varint(size);
    reserve(size);
    value.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + length);
    length += size;
  }

  void bytes(byte[] value) {
    varint(value.length);
    reserve(value.length);
    System.arraycopy(value, 0, bytes, length, value.length);
    length += value.length;
  }

  /** Begins a field with a length. Returns its beginning, for {@link #end}. */
  int begin(int number) {
    tag(number, WireFormat.WIRETYPE_LENGTH_DELIMITED);
    reserve(1);
    return length++;
  }

  /** Writes the length of the field that began at `begin` before its bytes. */
  void end(int begin) {
    int size = length - begin - 1;
    int more = CodedOutputStream.computeUInt32SizeNoTag(size) - 1;
    reserve(more);
    if (more > 0) {
      System.arraycopy(bytes, begin + 1, bytes, begin + 1 + more, size);
    }
    put(size, begin);
    length += more;
  }

  private int put(long value, int at) {
    int next = at;
    long rest = value;
    while ((rest & ~0x7fL) != 0) {
      bytes[next++] = (byte) (rest | 0x80);
      rest >>>= 7;
    }
    bytes[next++] = (byte) rest;
    return next;
  }

  /** Writes the lowest bytes of the number, the lowest first. */
  private void fixed(long value, int size) {
    reserve(size);
    for (int i = 0; i < size; i++) {
      bytes[length++] = (byte) (value >>> 8 * i);
    }
  }

  private void reserve(int more) {
    if (bytes.length - length < more) {
      bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, Math.addExact(length, more)));
    }
  }
}
