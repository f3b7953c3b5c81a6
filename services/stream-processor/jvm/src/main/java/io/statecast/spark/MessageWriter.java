package io.statecast.spark;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Comparator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Row;

/**
 * Writes rows straight as the bytes of one type of message, as Protobuf itself writes them: fields by rising number.
 *
 * <p>The inverse of {@link MessageReader}, with the same types and the same order of fields. A null leaves its field unset.
 */
final class MessageWriter {
  private static final Map<Descriptor, MessageWriter> KNOWN = new ConcurrentHashMap<>();
  private static final int USUAL_BYTES = 256;

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

  /** The writer of a type of message. */
  static MessageWriter of(Descriptor type) {
    // Asked for each record by all tasks: computeIfAbsent may lock even when it finds.
    MessageWriter known = KNOWN.get(type);
    return known == null ? KNOWN.computeIfAbsent(type, MessageWriter::new) : known;
  }

  /**
   * The bytes of a row.
   *
   * @throws IllegalArgumentException if the row has another number of fields or an enum has no such name
   */
  byte[] write(Row row) {
    if (row.size() != byNumber.length) {
      throw new IllegalArgumentException(
          "%s has %d fields, the row has %d".formatted(name, byNumber.length, row.size()));
    }
    return bytes(
        out -> {
          for (FieldWriter field : byNumber) {
            field.write(row, out);
          }
        });
  }

  /** The bytes of what is written to a stream of their own. */
  static byte[] bytes(Content content) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(USUAL_BYTES);
    CodedOutputStream out = CodedOutputStream.newInstance(bytes, USUAL_BYTES);
    try {
      content.writeTo(out);
      out.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  /** What stands between the beginning and the end of some bytes. */
  interface Content {
    void writeTo(CodedOutputStream out) throws IOException;
  }
}
