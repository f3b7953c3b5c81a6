package io.statecast.spark;

/** What Kafka Connect's schema says of a column: the name of its logical type, and of a decimal its scale; or null. */
record DeclaredType(String name, String scale) {
  static final DeclaredType NONE = new DeclaredType(null, null);

  boolean is(String... names) {
    return name != null && java.util.Arrays.asList(names).contains(name);
  }
}
