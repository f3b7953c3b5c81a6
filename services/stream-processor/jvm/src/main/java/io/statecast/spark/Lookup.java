package io.statecast.spark;

import java.util.HashMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF2;

/** `lookup(key, descriptors) → row`: what a {@link GlobalTables global table} holds under a key; null when nothing. */
public final class Lookup implements UDF2<String, byte[], Row> {
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

  @Override
  public Row call(String key, byte[] descriptors) throws InterruptedException {
    return key == null ? null : followed(descriptors).get(key);
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
