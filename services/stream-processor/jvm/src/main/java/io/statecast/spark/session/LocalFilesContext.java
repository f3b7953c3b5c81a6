package io.statecast.spark.session;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Provides Hadoop's local file system, to write checkpoints, without a process for each file: without its native
 * library, Hadoop starts <code>chmod</code> for each file that it makes, and <code>readlink</code> for each that it
 * renames.
 */
public final class LocalFilesContext extends DelegateToFileSystem {
  public LocalFilesContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
    super(uri, new LocalFiles(), configuration, FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }

  private static final class LocalFiles extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      String letters = FsPermission.createImmutable((short) (permission.toShort() & 0777)).toString();
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
    }

    /** Treats a link as its target. */
    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return getFileStatus(path);
    }
  }
}
