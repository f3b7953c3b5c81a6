package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/** The body of a lambda, whose result Spark copies with all that it refers to: that is taken off the {@link Allowance}. */
public final class Copied extends Interpreted {
  public Copied(Expression child) {
    super(child);
  }

  @Override
  public Object eval(InternalRow row) {
    Object value = value(0, row);
    Allowance.takeCopy(value);
    return value;
  }

  @Override
  Expression around(Seq<Expression> children) {
    return new Copied(children.head());
  }
}
