package io.statecast.spark.expressions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;

/**
 * Computes an expression of a pipeline's file. Gives null if it fails for a row, or makes more than {@link Allowance}
 * permits, so that no value of a row ends a query.
 *
 * <p>A regular expression that recurses too deeply in a long text is such a failure. A lack of memory is not: nothing
 * survives it, which is why there is an allowance.
 */
public final class Attempt extends Interpreted {
  /** Wraps the expression; once Spark has resolved it, its parts are {@link Checked}. */
  public Attempt(Expression child) {
    super(child.resolved() ? Checked.of(child) : child);
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    long outer = Allowance.begin();
    try {
      Object value = value(0, row);
      Allowance.check(value, 1);
      return value;
    } catch (Exception | StackOverflowError error) {
      return null;
    } finally {
      Allowance.end(outer);
    }
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Attempt(children.head());
  }
}
