package io.statecast.spark.expressions;

import java.io.Serializable;
import org.apache.spark.sql.types.DataType;

/** Looks at a value on its way into a function: passes it on, makes null of it, or fails; see {@link Guarded}. */
interface Guard extends Serializable {
  /** Returns the value for the function; `other` is that of the second child, or the value again if there is none. */
  Object pass(Object value, Object other);

  /** Returns the type of the result for a value of this type. */
  default DataType type(DataType value) {
    return value;
  }

  default boolean makesNull() {
    return false;
  }
}
