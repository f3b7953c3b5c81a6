/** Configures a Spark session: an optimizer rule, a file system, a password file, and an end with its parent. */
package io.statecast.spark.session;
