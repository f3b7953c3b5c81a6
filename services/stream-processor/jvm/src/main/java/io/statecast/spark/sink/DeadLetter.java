package io.statecast.spark.sink;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.ByteArray;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Makes the record of a dead letter, struct(topic, key, value, headers), with its content, and headers for the reason.
 *
 * <p>If the record is too large, the value is shortened; key and headers that take over half of the room are dropped.
 */
public final class DeadLetter implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int MAX_REASON = 1_000;
  private static final int MAX_CHARACTER_BYTES = 4;

  /** The bytes that Kafka adds to a header, at most. */
  private static final int HEADER_BYTES = 16;

  private static final int SINK = 0;
  private static final int TOPIC = 1;
  private static final int PARTITION = 2;
  private static final int OFFSET = 3;
  private static final int KEY = 4;
  private static final int VALUE = 5;
  private static final int HEADERS = 6;
  private static final int REASON = 7;

  private final String pipeline;
  private final List<String> names;
  private final Map<String, Integer> rooms;

  /**
   * @param names the names of the headers for the reason, the topic, the partition, the offset, the pipeline, and the
   *     bytes of a value that was cut
   * @param rooms by dead-letter topic, the bytes that a letter may have beside these headers
   */
  public DeadLetter(String pipeline, List<String> names, Map<String, Integer> rooms) {
    this.pipeline = pipeline;
    this.names = names;
    this.rooms = rooms;
  }

  /** Called by Spark's generated code with struct(sink, topic, partition, offset, key, value, headers, reason). */
  public InternalRow call(InternalRow letter) {
    byte[] key = letter.isNullAt(KEY) ? null : letter.getBinary(KEY);
    byte[] value = letter.isNullAt(VALUE) ? null : letter.getBinary(VALUE);
    ArrayData headers = letter.isNullAt(HEADERS) ? new GenericArrayData(new Object[0]) : letter.getArray(HEADERS);
    int room = rooms.get(letter.getUTF8String(SINK).toString());
    long beside = size(key) + sizeOf(headers);
    boolean whole = size(value) + beside <= room;
    boolean light = whole || beside * 2 <= room;
    long left = light ? room - beside : room;
    List<Object> all = new ArrayList<>();
    for (int i = 0; light && i < headers.numElements(); i++) {
      all.add(headers.getStruct(i, 2).copy());
    }
    addOwn(all, letter, whole ? null : String.valueOf(size(value)));
    Object shown = whole || value == null ? value : ByteArray.subStringSQL(value, 1, (int) left);
    return new GenericInternalRow(
        new Object[] {letter.getUTF8String(SINK), light ? key : null, shown, new GenericArrayData(all.toArray())});
  }

  private void addOwn(List<Object> headers, InternalRow letter, String truncated) {
    UTF8String reason = letter.getUTF8String(REASON);
    UTF8String[] values = {
      reason.substring(0, MAX_REASON),
      letter.getUTF8String(TOPIC),
      UTF8String.fromString(String.valueOf(letter.getInt(PARTITION))),
      UTF8String.fromString(String.valueOf(letter.getLong(OFFSET))),
      UTF8String.fromString(pipeline),
      UTF8String.fromString(truncated)
    };
    for (int i = 0; i < values.length; i++) {
      if (values[i] != null) {
        headers.add(new GenericInternalRow(new Object[] {UTF8String.fromString(names.get(i)), values[i].getBytes()}));
      }
    }
  }

  private static long sizeOf(ArrayData headers) {
    long bytes = 0;
    for (int i = 0; i < headers.numElements(); i++) {
      InternalRow each = headers.getStruct(i, 2);
      bytes += (long) each.getUTF8String(0).numChars() * MAX_CHARACTER_BYTES + HEADER_BYTES;
      bytes += each.isNullAt(1) ? 0 : each.getBinary(1).length;
    }
    return bytes;
  }

  private static int size(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }
}
