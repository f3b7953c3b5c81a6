package io.statecast.spark;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;

/** Provides {@link LocalFiles} through Hadoop's other interface to file systems, by which checkpoints are written. */
public final class LocalFilesContext extends DelegateToFileSystem {
  public LocalFilesContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
    super(uri, new LocalFiles(), configuration, FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }
}
