package io.statecast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/** Subtracts the bytes of a lambda's result from the {@link Allowance}: Spark copies it with all that it refers to. */
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
  Expression copyOf(Seq<Expression> children) {
    return new Copied(children.head());
  }
}
