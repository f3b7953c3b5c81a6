package io.statecast.spark;

import com.google.protobuf.Descriptors.Descriptor;
import java.io.Serializable;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The message that a function was last called with, so that a row costs two pointer comparisons and no look-up.
 *
 * <p>Spark hands the same literal objects to every row of a task. Calls from several threads are safe: the last answer is
 * one immutable object.
 */
final class MessageType implements Serializable {
  private static final long serialVersionUID = 1L;

  private transient volatile Resolved last;

  /** The descriptor of `message`; see {@link DescriptorCache#find}. */
  Descriptor resolve(UTF8String message, byte[] descriptors) {
    Resolved known = last;
    if (known == null || known.descriptors != descriptors || !known.message.equals(message)) {
      known = new Resolved(message, descriptors, DescriptorCache.find(descriptors, message.toString()));
      last = known;
    }
    return known.type;
  }

  private record Resolved(UTF8String message, byte[] descriptors, Descriptor type) {}
}
