package io.statecast.spark.expressions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Passes on the value of its first child through a {@link Guard}, which may also look at that of a second one. */
public final class Guarded extends Interpreted {
  private final Guard guard;

  Guarded(Guard guard, Expression... children) {
    super(children);
    this.guard = guard;
  }

  /** Returns whether the expression has passed this guard already. */
  static boolean has(Expression expression, Guard guard) {
    return expression instanceof Guarded known && (known.guard.equals(guard) || has(known.children().head(), guard));
  }

  @Override
  public DataType dataType() {
    return guard.type(super.dataType());
  }

  @Override
  public boolean nullable() {
    return guard.makesNull() || super.nullable();
  }

  @Override
  public Object eval(InternalRow row) {
    Object value = value(0, row);
    return guard.pass(value, value == null || children().size() == 1 ? value : value(1, row));
  }

  @Override
  boolean isLike(Object other) {
    return super.isLike(other) && ((Guarded) other).guard.equals(guard);
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Guarded(guard, CollectionConverters.asJava(children).toArray(Expression[]::new));
  }
}
