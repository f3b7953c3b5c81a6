package io.statecast.spark.tables;

import io.statecast.spark.decode.MessageType;
import java.io.Serializable;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** Looks up a key in a {@link GlobalTables global table}: `lookup(key) → row`; null if it has no row. */
public final class Lookup implements Serializable {
  private static final long serialVersionUID = 1L;

  private final HashMap<String, String> kafka;
  private final String topic;
  private final MessageType record;
  private final MessageType row;
  private transient volatile TableFollower table;

  public Lookup(HashMap<String, String> kafka, String topic, MessageType record, MessageType row) {
    this.kafka = kafka;
    this.topic = topic;
    this.record = record;
    this.row = row;
  }

  /** Called by Spark's generated code. */
  public InternalRow call(UTF8String key) throws InterruptedException {
    return followed().get(key.toString());
  }

  private TableFollower followed() {
    TableFollower known = table;
    if (known == null || known.ended()) {
      known = GlobalTables.of(kafka, topic, record, row);
      table = known;
    }
    return known;
  }
}
