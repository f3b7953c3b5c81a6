package io.statecast.spark.source;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaMicroBatchStream;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Reads topics in real-time mode with fewer tasks than Spark's own Kafka source.
 *
 * <p>Each task reads several partitions by one consumer. Spark's own source keeps a task, a thread and a consumer for
 * each partition of each query. Options, offsets and checkpoints are those of the original, beside {@link #TASKS} and
 * {@link #FIRST_MS}.
 */
public final class SharedKafkaSource extends KafkaSourceProvider {
  /** The option for the most tasks that read, a positive number. */
  public static final String TASKS = "readTasks";

  /** The option for the milliseconds after which the first batch of a run ends, if its trigger lets it be longer. */
  public static final String FIRST_MS = "firstCheckpointMs";

  @Override
  public KafkaTable getTable(CaseInsensitiveStringMap options) {
    return new SharedTable(options.getBoolean("includeHeaders", false));
  }

  private final class SharedTable extends KafkaTable {
    private SharedTable(boolean includeHeaders) {
      super(includeHeaders);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> (Scan) new SharedScan(options);
    }
  }

  private final class SharedScan extends KafkaScan {
    private final int tasks;
    private final long firstMs;

    private SharedScan(CaseInsensitiveStringMap options) {
      super(options);
      tasks = Integer.parseInt(options.get(TASKS));
      firstMs = Long.parseLong(options.get(FIRST_MS));
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new SharedKafkaStream((KafkaMicroBatchStream) super.toMicroBatchStream(checkpoint), tasks, firstMs);
    }
  }
}
