package io.statecast.spark.decode;

import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Takes the type of a message to the executors with a function: the file that declares it and those that this imports.
 *
 * <p>A JVM has one object for each type, however many tasks bring it, because readers and writers of messages are
 * cached by it.
 */
public final class MessageType implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Map<Key, MessageType> KNOWN = new ConcurrentHashMap<>();

  private final String name;
  private final byte[] files;
  private final transient Descriptor descriptor;

  private record Key(String name, ByteBuffer files) {}

  private MessageType(byte[] files, Descriptor descriptor) {
    this.name = descriptor.getFullName();
    this.files = files;
    this.descriptor = descriptor;
  }

  /** Returns the type that this describes. */
  static MessageType of(Descriptor descriptor) {
    Set<FileDescriptor> needed = new LinkedHashSet<>();
    addWithImports(descriptor.getFile(), needed);
    FileDescriptorSet.Builder files = FileDescriptorSet.newBuilder();
    needed.forEach(each -> files.addFile(each.toProto()));
    byte[] serialized = files.build().toByteArray();
    Key key = new Key(descriptor.getFullName(), ByteBuffer.wrap(serialized));
    return KNOWN.computeIfAbsent(key, unknown -> new MessageType(serialized, descriptor));
  }

  private static void addWithImports(FileDescriptor file, Set<FileDescriptor> needed) {
    file.getDependencies().forEach(each -> addWithImports(each, needed));
    needed.add(file);
  }

  public Descriptor descriptor() {
    return descriptor;
  }

  private Object readResolve() {
    Key key = new Key(name, ByteBuffer.wrap(files));
    return KNOWN.computeIfAbsent(key, unknown -> new MessageType(files, new DescriptorSet(files).find(name)));
  }

  /** Returns the full name of the message. */
  @Override
  public String toString() {
    return name;
  }
}
