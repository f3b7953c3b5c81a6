package io.statecast.spark;

import java.io.Serializable;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** `lookup(key, descriptors) → row`: what a {@link GlobalTables global table} holds under a key; null when nothing. */
public final class Lookup implements Serializable {
  private static final long serialVersionUID = 1L;

  private final HashMap<String, String> kafka;
  private final String topic;
  private final String message;
  private transient volatile TableFollower table;

  Lookup(HashMap<String, String> kafka, String topic, String message) {
    this.kafka = kafka;
    this.topic = topic;
    this.message = message;
  }

  /** Called by Spark's generated code. */
  public InternalRow call(UTF8String key, byte[] descriptors) throws InterruptedException {
    return followed(descriptors).get(key.toString());
  }

  private TableFollower followed(byte[] descriptors) {
    TableFollower known = table;
    if (known == null || known.ended()) {
      known = GlobalTables.of(kafka, topic, message, descriptors);
      table = known;
    }
    return known;
  }
}
