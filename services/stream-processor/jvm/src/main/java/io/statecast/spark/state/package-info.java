/** Keeps the state that all shapes use: the newest version of a row, events seen before, both sides of a join. */
package io.statecast.spark.state;
