package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/** Subtracts the bytes of a call's result from the {@link Allowance}. */
public final class Charged extends Interpreted {
  public Charged(Expression child) {
    super(child);
  }

  @Override
  public Object eval(InternalRow row) {
    Object value = value(0, row);
    Allowance.take(Allowance.ownSize(value));
    return value;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Charged(children.head());
  }
}
