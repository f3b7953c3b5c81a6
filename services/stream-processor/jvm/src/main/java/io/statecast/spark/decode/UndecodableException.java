package io.statecast.spark.decode;

/** Reports that a row cannot hold a message; the text is the reason that goes to the dead-letter topic. */
public final class UndecodableException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UndecodableException(String reason) {
    super(reason, null, false, false);
  }
}
