package org.apache.spark.sql.kafka010;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Takes the place of the companion object of this name, which is left out of the jar of Spark's Kafka connector.
 *
 * <p>The original ends the query at a record with a time that is not a 64-bit integer in microseconds, such as a
 * producer's nanoseconds. Everything else is as in the original.
 */
public final class KafkaRecordToRowConverter$ {
  public static final KafkaRecordToRowConverter$ MODULE$ = new KafkaRecordToRowConverter$();

  /** The last millisecond of the year 9999; nobody can write a later time. */
  private static final long LAST_MS = 253_402_300_799_999L;

  /** Kafka's own time for a record without one, -1, in microseconds. */
  private static final long UNKNOWN = -1_000;

  private final ArrayType headersType =
      DataTypes.createArrayType(
          new StructType().add("key", DataTypes.StringType).add("value", DataTypes.BinaryType));
  private final StructType withoutHeaders =
      new StructType()
          .add("key", DataTypes.BinaryType)
          .add("value", DataTypes.BinaryType)
          .add("topic", DataTypes.StringType)
          .add("partition", DataTypes.IntegerType)
          .add("offset", DataTypes.LongType)
          .add("timestamp", DataTypes.TimestampType)
          .add("timestampType", DataTypes.IntegerType);
  private final StructType withHeaders = withoutHeaders.add("headers", (DataType) headersType);

  private KafkaRecordToRowConverter$() {}

  public ArrayType headersType() {
    return headersType;
  }

  public StructType kafkaSchema(boolean includeHeaders) {
    return includeHeaders ? withHeaders : withoutHeaders;
  }

  public StructType org$apache$spark$sql$kafka010$KafkaRecordToRowConverter$$schemaWithoutHeaders() {
    return withoutHeaders;
  }

  public StructType org$apache$spark$sql$kafka010$KafkaRecordToRowConverter$$schemaWithHeaders() {
    return withHeaders;
  }

  /** Returns the record's time in microseconds; {@link #UNKNOWN} if it is before 1970 or after the year 9999. */
  public long org$apache$spark$sql$kafka010$KafkaRecordToRowConverter$$parseTimestamp(
      ConsumerRecord<byte[], byte[]> record) {
    long time = record.timestamp();
    return time < 0 || time > LAST_MS ? UNKNOWN : time * 1_000;
  }
}
