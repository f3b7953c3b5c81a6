package io.statecast.peer;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/** Shares one block cache and one budget of write buffers among all stores, as Kafka's documentation advises. */
public final class BoundedMemory implements RocksDBConfigSetter {
  private static final long CACHE_BYTES = 128L << 20;
  private static final long WRITE_BUFFERS_BYTES = 64L << 20;
  private static final Cache CACHE;
  private static final WriteBufferManager WRITE_BUFFERS;

  static {
    RocksDB.loadLibrary();
    CACHE = new LRUCache(CACHE_BYTES, -1, false, 0.1);
    WRITE_BUFFERS = new WriteBufferManager(WRITE_BUFFERS_BYTES, CACHE);
  }

  @Override
  public void setConfig(String storeName, Options options, Map<String, Object> configs) {
    // Kafka Streams has set a table configuration with a bloom filter.
    BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
    table.setBlockCache(CACHE);
    table.setCacheIndexAndFilterBlocks(true);
    table.setCacheIndexAndFilterBlocksWithHighPriority(true);
    table.setPinTopLevelIndexAndFilter(true);
    options.setWriteBufferManager(WRITE_BUFFERS);
    options.setTableFormatConfig(table);
  }

  @Override
  public void close(String storeName, Options options) {}
}
