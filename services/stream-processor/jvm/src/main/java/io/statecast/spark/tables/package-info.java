/** Follows keyed topics in each executor, and looks up their rows by key. */
package io.statecast.spark.tables;
