package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/** Checks an argument that a call copies `copies` times; fails if the copies exceed the {@link Allowance}. */
public final class Limited extends Interpreted {
  public Limited(Expression argument, Expression copies) {
    super(argument, copies);
  }

  @Override
  public Object eval(InternalRow row) {
    Object argument = value(0, row);
    if (argument != null && value(1, row) instanceof Number copies) {
      Allowance.check(argument, copies.doubleValue());
    }
    return argument;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Limited(children.apply(0), children.apply(1));
  }
}
