package io.statecast.spark.decode;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * Makes a table's row from Debezium's texts: `row_from_texts(texts, declared) → struct(row, payload, problem)`.
 *
 * <p>`texts` has the message's fields in their order. Each value at the end of a path is its text in the JSON, or null
 * for a missing column and for SQL's NULL, which leave the field unset and are null in the row. `declared` has
 * struct(field, name, scale) for the columns with a type that Kafka Connect's schema names. `payload` is the row's
 * encoded message. A text that does not fit its field gives a problem that names the field, instead of row and payload:
 * nothing is rounded or cut. Null texts give null.
 */
public final class RowFromTexts implements Serializable {
  private static final long serialVersionUID = 1L;

  private final MessageType type;

  public RowFromTexts(MessageType type) {
    this.type = type;
  }

  /** Called by Spark's generated code. */
  public InternalRow call(InternalRow texts, ArrayData declared) {
    try {
      Descriptor table = type.descriptor();
      DynamicMessage.Builder row = DynamicMessage.newBuilder(table);
      fill(row, texts, byField(declared), "");
      byte[] payload = row.build().toByteArray();
      return DecodeRow.decoded(withNulls(MessageReader.of(table).read(payload), texts, table), payload);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return DecodeRow.problem(e.getMessage());
    }
  }

  /** Returns the row with null for each column that is NULL, which the message cannot express for every field. */
  private static InternalRow withNulls(InternalRow row, InternalRow texts, Descriptor table) {
    for (int i = 0; i < row.numFields(); i++) {
      if (texts.isNullAt(i) && !table.getFields().get(i).isRepeated()) {
        row.setNullAt(i);
      }
    }
    return row;
  }

  private static Map<String, DeclaredType> byField(ArrayData declared) {
    Map<String, DeclaredType> types = new HashMap<>();
    for (int i = 0; i < declared.numElements(); i++) {
      InternalRow each = declared.getStruct(i, 3);
      types.put(text(each, 0), new DeclaredType(text(each, 1), text(each, 2)));
    }
    return types;
  }

  private static void fill(
      DynamicMessage.Builder message, InternalRow texts, Map<String, DeclaredType> declared, String within) {
    List<FieldDescriptor> fields = message.getDescriptorForType().getFields();
    for (int i = 0; i < fields.size(); i++) {
      FieldDescriptor field = fields.get(i);
      DeclaredType of = declared.getOrDefault(field.getName(), DeclaredType.NONE);
      String path = within + field.getName();
      if (texts.isNullAt(i)) {
        continue;
      }
      if (!field.isRepeated()) {
        message.setField(field, value(field, texts, i, of, path));
        continue;
      }
      ArrayData elements = texts.getArray(i);
      for (int each = 0; each < elements.numElements(); each++) {
        message.addRepeatedField(field, element(field, elements, each, of, path));
      }
    }
  }

  private static Object element(FieldDescriptor field, ArrayData elements, int at, DeclaredType declared, String path) {
    if (elements.isNullAt(at)) {
      throw new UndecodableException(path + " has an element that is NULL: only a field of type string can take the array, as JSON");
    }
    return value(field, elements, at, declared, path);
  }

  private static Object value(FieldDescriptor field, SpecializedGetters texts, int at, DeclaredType declared, String path) {
    if (field.getType() != FieldDescriptor.Type.MESSAGE || MessageReader.isTimestamp(field.getMessageType())) {
      return FieldText.read(field, text(texts, at), declared, path);
    }
    DynamicMessage.Builder message = DynamicMessage.newBuilder(field.getMessageType());
    fill(message, texts.getStruct(at, field.getMessageType().getFields().size()), Map.of(), path + ".");
    return message.build();
  }

  private static String text(SpecializedGetters texts, int at) {
    return texts.isNullAt(at) ? null : texts.getUTF8String(at).toString();
  }
}
