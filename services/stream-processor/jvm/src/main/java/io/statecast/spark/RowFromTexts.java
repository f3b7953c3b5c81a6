package io.statecast.spark;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF4;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * `row_from_texts(texts, declared, message, descriptors) → struct(row, payload, problem)`: a table's row from Debezium.
 *
 * <p>`texts` has the message's fields in their order; each value at the end of a path is the text that stands in the
 * JSON, null for a missing column and for SQL's NULL, which leave the field unset and are null in the row. `declared` has struct(field, name,
 * scale) of the columns whose type Kafka Connect's schema names, or is null. `payload` is the row's encoded message. A text
 * that does not fit its field gives the problem, which names the field, in place of row and payload: nothing is rounded
 * or cut. Null texts give null.
 */
public final class RowFromTexts implements UDF4<Row, Seq<Row>, String, byte[], Row> {
  private static final long serialVersionUID = 1L;

  private final MessageType type = new MessageType();

  @Override
  public Row call(Row texts, Seq<Row> declared, String message, byte[] descriptors) {
    if (texts == null) {
      return null;
    }
    try {
      Descriptor table = type.resolve(message, descriptors);
      DynamicMessage.Builder row = DynamicMessage.newBuilder(table);
      fill(row, texts, byField(declared), "");
      byte[] payload = row.build().toByteArray();
      return RowFactory.create(withNulls(MessageReader.of(table).read(payload), texts, table), payload, null);
    } catch (InvalidProtocolBufferException | UndecodableException e) {
      return RowFactory.create(null, null, e.getMessage());
    }
  }

  /** The row with null for each column that is NULL, which the message cannot say of every field. */
  private static Row withNulls(Row row, Row texts, Descriptor table) {
    Object[] values = new Object[row.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = texts.isNullAt(i) && !table.getFields().get(i).isRepeated() ? null : row.get(i);
    }
    return RowFactory.create(values);
  }

  private static Map<String, DeclaredType> byField(Seq<Row> declared) {
    Map<String, DeclaredType> types = new HashMap<>();
    if (declared != null) {
      for (Row each : CollectionConverters.asJava(declared)) {
        types.put(each.getString(0), new DeclaredType(each.getString(1), each.getString(2)));
      }
    }
    return types;
  }

  private static void fill(DynamicMessage.Builder message, Row texts, Map<String, DeclaredType> declared, String within) {
    List<FieldDescriptor> fields = message.getDescriptorForType().getFields();
    for (int i = 0; i < fields.size(); i++) {
      FieldDescriptor field = fields.get(i);
      DeclaredType of = declared.getOrDefault(field.getName(), DeclaredType.NONE);
      String path = within + field.getName();
      if (texts.isNullAt(i)) {
        continue;
      }
      if (field.isRepeated()) {
        texts.getList(i).forEach(each -> message.addRepeatedField(field, element(field, each, of, path)));
      } else {
        message.setField(field, value(field, texts.get(i), of, path));
      }
    }
  }

  private static Object element(FieldDescriptor field, Object element, DeclaredType declared, String path) {
    if (element == null) {
      throw new UndecodableException(path + " has an element that is NULL: only a field of type string can take the array, as JSON");
    }
    return value(field, element, declared, path);
  }

  private static Object value(FieldDescriptor field, Object texts, DeclaredType declared, String path) {
    if (texts instanceof Row inner) {
      DynamicMessage.Builder message = DynamicMessage.newBuilder(field.getMessageType());
      fill(message, inner, Map.of(), path + ".");
      return message.build();
    }
    return FieldText.read(field, (String) texts, declared, path);
  }
}
