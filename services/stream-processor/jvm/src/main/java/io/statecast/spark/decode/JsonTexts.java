package io.statecast.spark.decode;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads the object in a JSON text: `json_texts(text, shape)` gives each value at the end of a path as its text.
 *
 * <p>The shape is a struct of texts, structs, arrays and maps, which are in the order of their keys. Its last field
 * takes the whole text if that is not a JSON object, or has a value of another shape, which then is null. A number
 * keeps all its digits. An object or an array where the shape has a text stays JSON, without the spaces between its
 * parts. If a name occurs twice, the last value counts; names that the shape does not have are left out. Null gives
 * null.
 */
public final class JsonTexts implements Serializable {
  private static final long serialVersionUID = 1L;

  private static final JsonFactory FACTORY =
      new JsonFactoryBuilder()
          // The topic bounds the size of a record; nesting keeps Jackson's own bound.
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxStringLength(Integer.MAX_VALUE)
                  .maxNumberLength(Integer.MAX_VALUE)
                  .build())
          // Debezium writes NaN and infinities.
          .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
          .build();

  private final StructType type;
  private transient Shape shape;
  private transient byte[] lastText;
  private transient InternalRow last;

  public JsonTexts(StructType type) {
    this.type = type;
  }

  /**
   * Reads the object; called by Spark's generated code. A text that comes twice in a row, as schemas do, is read once.
   */
  public InternalRow call(UTF8String text) {
    byte[] json = text.getBytes();
    if (!Arrays.equals(json, lastText)) {
      shape = shape == null ? Shape.of(type) : shape;
      last = new Reading(json).whole(shape);
      lastText = json;
    }
    return last;
  }

  /** The form of a value: a struct has fields by name, an array elements, a map values, and a text none of them. */
  private record Shape(Map<String, Integer> places, Shape[] fields, Shape element, Shape value) {
    static Shape of(DataType type) {
      if (type instanceof ArrayType array) {
        return new Shape(null, null, of(array.elementType()), null);
      }
      if (type instanceof MapType map) {
        return new Shape(null, null, null, of(map.valueType()));
      }
      if (!(type instanceof StructType struct)) {
        return new Shape(null, null, null, null);
      }
      Map<String, Integer> places = new HashMap<>();
      Shape[] fields = new Shape[struct.length()];
      for (int i = 0; i < fields.length; i++) {
        places.put(struct.fields()[i].name(), i);
        fields[i] = of(struct.fields()[i].dataType());
      }
      return new Shape(places, fields, null, null);
    }

    boolean isText() {
      return fields == null && element == null && value == null;
    }
  }

  /** Reads one text. */
  private static final class Reading {
    private final byte[] json;
    private boolean misfits;

    Reading(byte[] json) {
      this.json = json;
    }

    InternalRow whole(Shape shape) {
      int malformed = shape.fields.length - 1;
      Object[] values = new Object[shape.fields.length];
      try (JsonParser parser = FACTORY.createParser(json)) {
        if (parser.nextToken() == JsonToken.START_OBJECT) {
          fill(values, parser, shape);
          misfits |= parser.nextToken() != null;
        } else {
          misfits = true;
        }
      } catch (IOException e) {
        misfits = true;
        Arrays.fill(values, null);
      }
      values[malformed] = misfits ? UTF8String.fromBytes(json) : null;
      return new GenericInternalRow(values);
    }

    private void fill(Object[] values, JsonParser parser, Shape shape) throws IOException {
      for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
        Integer place = shape.places.get(name);
        JsonToken token = parser.nextToken();
        if (place == null) {
          parser.skipChildren();
        } else {
          values[place] = value(token, parser, shape.fields[place]);
        }
      }
    }

    private Object value(JsonToken token, JsonParser parser, Shape shape) throws IOException {
      if (token == JsonToken.VALUE_NULL) {
        return null;
      }
      if (shape.fields != null && token == JsonToken.START_OBJECT) {
        Object[] values = new Object[shape.fields.length];
        fill(values, parser, shape);
        return new GenericInternalRow(values);
      }
      if (shape.value != null && token == JsonToken.START_OBJECT) {
        Map<UTF8String, Object> values = new TreeMap<>();
        for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
          values.put(UTF8String.fromString(name), value(parser.nextToken(), parser, shape.value));
        }
        return new ArrayBasedMapData(
            new GenericArrayData(values.keySet().toArray()), new GenericArrayData(values.values().toArray()));
      }
      if (shape.element != null && token == JsonToken.START_ARRAY) {
        List<Object> elements = new ArrayList<>();
        for (JsonToken each = parser.nextToken(); each != JsonToken.END_ARRAY; each = parser.nextToken()) {
          elements.add(value(each, parser, shape.element));
        }
        return new GenericArrayData(elements.toArray());
      }
      if (!shape.isText()) {
        misfits = true;
        parser.skipChildren();
        return null;
      }
      return token.isStructStart() ? part(parser) : UTF8String.fromString(parser.getText());
    }

    /** Returns the text of the object or array that begins here. */
    private UTF8String part(JsonParser parser) throws IOException {
      int begin = (int) parser.currentTokenLocation().getByteOffset();
      parser.skipChildren();
      return withoutSpaces(begin, (int) parser.currentLocation().getByteOffset());
    }

    private UTF8String withoutSpaces(int begin, int end) {
      byte[] kept = new byte[end - begin];
      int length = 0;
      boolean inText = false;
      for (int i = begin; i < end; i++) {
        byte each = json[i];
        if (inText && each == '\\') {
          kept[length++] = each;
          each = json[++i];
        } else if (each == '"') {
          inText = !inText;
        } else if (!inText && (each == ' ' || each == '\n' || each == '\r' || each == '\t')) {
          continue;
        }
        kept[length++] = each;
      }
      return UTF8String.fromBytes(kept, 0, length);
    }
  }
}
