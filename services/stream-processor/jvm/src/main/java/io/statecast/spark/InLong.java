package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/** Passes on an argument that Spark makes a whole number: null for NaN, and for a value that a bigint cannot hold. */
public final class InLong extends Interpreted {
  /** 2^63 as a double, the first one that a bigint cannot hold. */
  private static final double BEYOND = 0x1p63;

  public InLong(Expression argument) {
    super(argument);
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    Object argument = value(0, row);
    if (argument instanceof Double || argument instanceof Float) {
      double number = ((Number) argument).doubleValue();
      return number >= -BEYOND && number < BEYOND ? argument : null;
    }
    return argument;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new InLong(children.head());
  }
}
