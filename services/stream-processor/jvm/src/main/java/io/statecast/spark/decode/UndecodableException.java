package io.statecast.spark;

/** Reports that a row cannot hold a message; the text is the reason that goes to the dead-letter topic. */
final class UndecodableException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  UndecodableException(String reason) {
    super(reason, null, false, false);
  }
}
