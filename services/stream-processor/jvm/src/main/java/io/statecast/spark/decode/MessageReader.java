package io.statecast.spark.decode;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/**
 * Reads the bytes of one type of message straight into Spark's internal rows, by the rules of Protobuf's own parser.
 *
 * <p>A row has the message's fields in the order of their declaration. Types are those of spark-protobuf: an enum is
 * its value's name, a Timestamp one in microseconds, a message a row, a repeated field an array, an unset field with
 * presence null. A text that is a decimal is a number, and null when it is unset. Unknown fields are skipped.
 */
public final class MessageReader {
  private static final Map<Descriptor, MessageReader> KNOWN = new ConcurrentHashMap<>();
  private static final String TIMESTAMP = "google.protobuf.Timestamp";

  /** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the bounds that timestamp.proto sets. */
  private static final long FIRST_SECOND = -62_135_596_800L;

  private static final long LAST_SECOND = 253_402_300_799L;

  private final FieldReader[] fields;
  private final FieldReader[] byNumber;
  private final int[] numbers;
  private final boolean isTimestamp;

  private MessageReader(Descriptor type) {
    isTimestamp = isTimestamp(type);
    fields = type.getFields().stream().map(FieldReader::new).toArray(FieldReader[]::new);
    byNumber = fields.clone();
    Arrays.sort(byNumber, Comparator.comparingInt(each -> each.field.getNumber()));
    numbers = Arrays.stream(byNumber).mapToInt(each -> each.field.getNumber()).toArray();
  }

  /** Returns the reader of a type of message. */
  public static MessageReader of(Descriptor type) {
    // All tasks ask for each record, and computeIfAbsent may lock even when the key is present.
    MessageReader known = KNOWN.get(type);
    return known == null ? KNOWN.computeIfAbsent(type, MessageReader::new) : known;
  }

  /** Returns whether a Timestamp can hold the second, counted since 1970. */
  public static boolean isValid(long second) {
    return second >= FIRST_SECOND && second <= LAST_SECOND;
  }

  public static boolean isTimestamp(Descriptor type) {
    return type.getFullName().equals(TIMESTAMP);
  }

  /**
   * Reads the row of a message.
   *
   * @throws InvalidProtocolBufferException if the bytes are not such a message
   * @throws UndecodableException if a row cannot hold its values: an enum number without a name, a Timestamp out of its
   *     range, more values than {@link ReadBudget} allows
   */
  public InternalRow read(byte[] value) throws InvalidProtocolBufferException {
    try {
      Object[] values = new Object[fields.length];
      merge(values, CodedInputStream.newInstance(value), new ReadBudget());
      return finish(values);
    } catch (InvalidProtocolBufferException e) {
      throw e;
    } catch (IOException e) {
      throw new InvalidProtocolBufferException(e);
    }
  }

  /** Reads fields into `values` up to the end of the message; a message that comes twice is merged. */
  private void merge(Object[] values, CodedInputStream in, ReadBudget budget) throws IOException {
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      budget.count();
      int place = Arrays.binarySearch(numbers, WireFormat.getTagFieldNumber(tag));
      FieldReader field = place < 0 ? null : byNumber[place];
      int wireType = WireFormat.getTagWireType(tag);
      if (field != null && field.isMessage && wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED) {
        readMessage(field, values, in, budget);
      } else if (field != null && wireType == field.wireType) {
        put(field, values, field.read(in));
      } else if (field != null && field.packable && wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED) {
        readPacked(field, values, in, budget);
      } else if (!in.skipField(tag)) {
        throw new InvalidProtocolBufferException("a group ends that has not begun");
      }
    }
  }

  private static void readMessage(FieldReader field, Object[] values, CodedInputStream in, ReadBudget budget)
      throws IOException {
    MessageReader reader = field.messageReader();
    Object begun = field.isRepeated ? null : values[field.index];
    Object[] inner = begun == null ? new Object[reader.fields.length] : (Object[]) begun;
    int limit = in.pushLimit(in.readRawVarint32());
    budget.descend();
    reader.merge(inner, in, budget);
    budget.ascend();
    in.popLimit(limit);
    put(field, values, field.isRepeated ? reader.finish(field.field, inner) : inner);
  }

  private static void readPacked(FieldReader field, Object[] values, CodedInputStream in, ReadBudget budget)
      throws IOException {
    int limit = in.pushLimit(in.readRawVarint32());
    while (in.getBytesUntilLimit() > 0) {
      budget.count();
      put(field, values, field.read(in));
    }
    in.popLimit(limit);
  }

  @SuppressWarnings("unchecked")
  private static void put(FieldReader field, Object[] values, Object value) {
    if (!field.isRepeated) {
      for (int other : field.alternatives) {
        values[other] = null;
      }
      values[field.index] = value;
    } else if (values[field.index] == null) {
      values[field.index] = new ArrayList<>(List.of(value));
    } else {
      ((List<Object>) values[field.index]).add(value);
    }
  }

  private InternalRow finish(Object[] values) {
    for (FieldReader field : fields) {
      Object value = values[field.index];
      values[field.index] = value == null ? field.unset() : field.finish(value);
    }
    return new GenericInternalRow(values);
  }

  /** Returns the row's value for a message of this type, which was read as `values` for the field. */
  Object finish(FieldDescriptor field, Object[] values) {
    return isTimestamp ? microseconds(field, values) : finish(values);
  }

  private static long microseconds(FieldDescriptor field, Object[] timestamp) {
    long seconds = timestamp[0] == null ? 0 : (Long) timestamp[0];
    int nanos = timestamp[1] == null ? 0 : (Integer) timestamp[1];
    if (!isValid(seconds) || nanos < 0 || nanos > 999_999_999) {
      throw new UndecodableException("%s: %d s %d ns is no valid Timestamp".formatted(field.getFullName(), seconds, nanos));
    }
    return seconds * 1_000_000 + nanos / 1_000;
  }
}
