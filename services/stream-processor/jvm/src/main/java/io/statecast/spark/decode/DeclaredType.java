package io.statecast.spark.decode;

/**
 * The type of a column in Kafka Connect's schema: the name of its logical type, and the scale of a decimal; or null.
 */
record DeclaredType(String name, String scale) {
  static final DeclaredType NONE = new DeclaredType(null, null);

  boolean is(String... names) {
    return name != null && java.util.Arrays.asList(names).contains(name);
  }
}
