package io.statecast.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Provides Hadoop's local file system without a process for each file: without its native library, Hadoop starts
 * <code>chmod</code> for each file that it makes, and <code>readlink</code> for each that it renames.
 */
final class LocalFiles extends RawLocalFileSystem {
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
