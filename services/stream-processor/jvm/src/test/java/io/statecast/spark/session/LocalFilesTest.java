package io.statecast.spark.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Options.CreateOpts;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checks files as checkpoints write them: made beside, and renamed when they are complete. */
class LocalFilesTest {
  @TempDir
  java.nio.file.Path directory;

  private FileContext files;

  @BeforeEach
  void open() throws IOException {
    Configuration configuration = new Configuration(false);
    configuration.set("fs.AbstractFileSystem.file.impl", LocalFilesContext.class.getName());
    files = FileContext.getFileContext(URI.create("file:///"), configuration);
  }

  @Test
  void aFileIsMadeWithThePermissionsAskedFor() throws IOException {
    write("made", "x", FsPermission.createImmutable((short) 0640));

    assertEquals("rw-r-----", PosixFilePermissions.toString(
        Files.getPosixFilePermissions(directory.resolve("made"))));
  }

  @Test
  void aRenameReplacesOnlyWhenItIsToldTo() throws IOException {
    write("new", "2", FsPermission.getFileDefault());
    write("old", "1", FsPermission.getFileDefault());

    assertThrows(FileAlreadyExistsException.class, () -> files.rename(at("new"), at("old")));
    files.rename(at("new"), at("old"), org.apache.hadoop.fs.Options.Rename.OVERWRITE);

    assertEquals("2", Files.readString(directory.resolve("old")));
    assertFalse(Files.exists(directory.resolve("new")));
  }

  private void write(String name, String text, FsPermission permission) throws IOException {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE);
    try (var out = files.create(at(name), flags, CreateOpts.perms(permission))) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  private Path at(String name) {
    return new Path(directory.resolve(name).toUri());
  }
}
