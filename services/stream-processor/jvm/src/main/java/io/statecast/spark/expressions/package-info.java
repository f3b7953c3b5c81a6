/** Keeps the SQL of pipeline files exact and bounded: null where it would overflow, fail or never end. */
package io.statecast.spark.expressions;
