package io.statecast.spark;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Finds message descriptors in serialized descriptor sets, parsing each set once per JVM. */
final class DescriptorCache {
  private static final Map<ByteBuffer, Map<String, Descriptor>> PARSED = new ConcurrentHashMap<>();

  private DescriptorCache() {}

  /**
   * The descriptor of a message.
   *
   * @param descriptors a serialized google.protobuf.FileDescriptorSet, imports before the files that import them
   * @param message the full name of a top-level message
   * @throws IllegalArgumentException if the set cannot be read or has no such message
   */
  static Descriptor find(byte[] descriptors, String message) {
    Descriptor found = PARSED.computeIfAbsent(ByteBuffer.wrap(descriptors), DescriptorCache::parse).get(message);
    if (found == null) {
      throw new IllegalArgumentException("the descriptor set has no message " + message);
    }
    return found;
  }

  private static Map<String, Descriptor> parse(ByteBuffer descriptors) {
    try {
      return messages(FileDescriptorSet.parseFrom(descriptors.duplicate()));
    } catch (InvalidProtocolBufferException | DescriptorValidationException e) {
      throw new IllegalArgumentException("not a descriptor set: " + e.getMessage(), e);
    }
  }

  private static Map<String, Descriptor> messages(FileDescriptorSet set) throws DescriptorValidationException {
    Map<String, FileDescriptor> files = new HashMap<>();
    Map<String, Descriptor> messages = new HashMap<>();
    for (FileDescriptorProto proto : set.getFileList()) {
      FileDescriptor[] imports =
          proto.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
      FileDescriptor file = FileDescriptor.buildFrom(proto, imports);
      files.put(proto.getName(), file);
      file.getMessageTypes().forEach(message -> messages.put(message.getFullName(), message));
    }
    return messages;
  }
}
