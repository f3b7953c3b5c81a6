package io.statecast.spark.decode;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import java.util.HashMap;
import java.util.Map;

/** Holds the messages of a serialized descriptor set, which is parsed once; called from Python. */
public final class DescriptorSet {
  private final Map<String, Descriptor> messages = new HashMap<>();

  /**
   * Parses the set.
   *
   * @param serialized a google.protobuf.FileDescriptorSet, imports before the files that import them
   * @throws IllegalArgumentException if it cannot be read
   */
  public DescriptorSet(byte[] serialized) {
    try {
      add(FileDescriptorSet.parseFrom(serialized));
    } catch (InvalidProtocolBufferException | DescriptorValidationException e) {
      throw new IllegalArgumentException("not a descriptor set: " + e.getMessage(), e);
    }
  }

  private void add(FileDescriptorSet set) throws DescriptorValidationException {
    Map<String, FileDescriptor> files = new HashMap<>();
    for (FileDescriptorProto proto : set.getFileList()) {
      FileDescriptor[] imports =
          proto.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
      FileDescriptor file = FileDescriptor.buildFrom(proto, imports);
      files.put(proto.getName(), file);
      file.getMessageTypes().forEach(message -> messages.put(message.getFullName(), message));
    }
  }

  /**
   * Returns the type of a message, to go with a function.
   *
   * @param message the full name of a top-level message
   * @throws IllegalArgumentException if the set has no such message
   */
  public MessageType type(String message) {
    return MessageType.of(find(message));
  }

  Descriptor find(String message) {
    Descriptor descriptor = messages.get(message);
    if (descriptor == null) {
      throw new IllegalArgumentException("the descriptor set has no message " + message);
    }
    return descriptor;
  }
}
