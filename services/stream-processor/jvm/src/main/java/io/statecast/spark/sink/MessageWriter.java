package io.statecast.spark.sink;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import io.statecast.spark.decode.MessageReader;
import java.util.Comparator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Writes Spark's internal rows straight as the bytes of one type of message, as Protobuf itself writes them: fields by
 * rising number.
 *
 * <p>It is the inverse of {@link MessageReader}, with the same types and the same order of fields. A null leaves its
 * field unset.
 */
final class MessageWriter {
  private static final Map<Descriptor, MessageWriter> KNOWN = new ConcurrentHashMap<>();

  private final String name;
  private final FieldWriter[] byNumber;

  private MessageWriter(Descriptor type) {
    name = type.getFullName();
    byNumber =
        type.getFields().stream()
            .sorted(Comparator.comparingInt(FieldDescriptor::getNumber))
            .map(FieldWriter::new)
            .toArray(FieldWriter[]::new);
  }

  /** Returns the writer of a type of message. */
  static MessageWriter of(Descriptor type) {
    // All tasks ask for each record, and computeIfAbsent may lock even when the key is present.
    MessageWriter known = KNOWN.get(type);
    return known == null ? KNOWN.computeIfAbsent(type, MessageWriter::new) : known;
  }

  /** Returns the number of fields of a row. */
  int size() {
    return byNumber.length;
  }

  /**
   * Returns the bytes of a row.
   *
   * @throws IllegalArgumentException if the row has another number of fields or an enum has no such name
   */
  byte[] write(InternalRow row) {
    MessageBytes out = new MessageBytes();
    write(row, out);
    return out.toArray();
  }

  void write(InternalRow row, MessageBytes out) {
    if (row.numFields() != byNumber.length) {
      throw new IllegalArgumentException(
          "%s has %d fields, the row has %d".formatted(name, byNumber.length, row.numFields()));
    }
    for (FieldWriter field : byNumber) {
      field.write(row, out);
    }
  }
}
