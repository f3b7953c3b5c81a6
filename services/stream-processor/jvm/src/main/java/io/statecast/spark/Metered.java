package io.statecast.spark;

import java.util.function.ToDoubleBiFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.util.ArrayData;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Passes on a value, and takes its cost from the {@link Allowance}: the memory or the time of a function. */
public final class Metered extends Interpreted {
  /** The cost of a value, in bytes; that of pairs also depends on the value of a second child, if there is one. */
  enum Cost {
    /** The result of a call. */
    RESULT((value, none) -> Allowance.ownSize(value)),
    /** The result of a lambda, which Spark copies with all that it refers to. */
    COPY((value, none) -> Allowance.size(value, Allowance.left())),
    /** An argument of a call in a lambda, which may read it for each element of a long list: 1 GiB at most. */
    READ((value, none) -> Allowance.ownSize(value) / 16.0),
    /** A text in each place of which a function looks for the other one. */
    SEARCH((value, other) -> pairs(value, other) / 32),
    /** A text whose characters a function compares with all of the other one. */
    TABLE(Cost::pairs),
    /** An array whose elements a function compares with all of the other one. */
    COMPARE((value, other) -> pairs(value, other) * 8);

    private final transient ToDoubleBiFunction<Object, Object> bytes;

    Cost(ToDoubleBiFunction<Object, Object> bytes) {
      this.bytes = bytes;
    }

    private static double pairs(Object value, Object other) {
      return (double) parts(value) * parts(other);
    }

    private static long parts(Object value) {
      return value instanceof ArrayData array ? array.numElements() : Allowance.size(value, 0);
    }
  }

  private final Cost cost;

  Metered(Cost cost, Expression... valueAndOther) {
    super(valueAndOther);
    this.cost = cost;
  }

  @Override
  public Object eval(InternalRow row) {
    Object value = value(0, row);
    Object other = value == null || children().size() == 1 ? value : value(1, row);
    Allowance.take((long) cost.bytes.applyAsDouble(value, other));
    return value;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Metered(cost, CollectionConverters.asJava(children).toArray(Expression[]::new));
  }

  @Override
  boolean isLike(Object other) {
    return super.isLike(other) && ((Metered) other).cost == cost;
  }
}
