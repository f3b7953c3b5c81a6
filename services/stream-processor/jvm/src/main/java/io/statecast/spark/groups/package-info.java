/** Keeps the state of groups: their sums, their totals, and bounded bags of the values that are in them. */
package io.statecast.spark.groups;
