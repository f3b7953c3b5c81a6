/** Turns rows into records of keyed topics and of dead letters. */
package io.statecast.spark.sink;
