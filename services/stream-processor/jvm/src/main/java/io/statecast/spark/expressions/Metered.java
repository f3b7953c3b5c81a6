package io.statecast.spark.expressions;

import java.util.function.ToDoubleBiFunction;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** Takes the cost of a value from the {@link Allowance}: the memory or the time of a function, in bytes. */
enum Metered implements Guard {
  /** The result of a call. */
  RESULT((value, none) -> Allowance.ownSize(value)),
  /** The result of a lambda, which Spark copies with all that it refers to. */
  COPY((value, none) -> Allowance.size(value, Allowance.left())),
  /** An argument that a call copies as often as the other value says: the copies must fit, and cost nothing here. */
  COPIES(Metered::copies),
  /** An argument of a call in a lambda, which may read it for each element of a long list: 1 GiB at most. */
  READ((value, none) -> Allowance.ownSize(value) / 16.0),
  /** A text in each place of which a function looks for the other one. */
  SEARCH((value, other) -> pairs(value, other) / 32),
  /** A text whose characters a function compares with all of the other one. */
  TABLE(Metered::pairs),
  /** An array whose elements a function compares with all of the other one. */
  COMPARE((value, other) -> pairs(value, other) * 8);

  private final transient ToDoubleBiFunction<Object, Object> bytes;

  Metered(ToDoubleBiFunction<Object, Object> bytes) {
    this.bytes = bytes;
  }

  @Override
  public Object pass(Object value, Object other) {
    Allowance.take((long) bytes.applyAsDouble(value, other));
    return value;
  }

  private static double copies(Object value, Object copies) {
    if (value != null && copies instanceof Number number) {
      Allowance.check(value, number.doubleValue());
    }
    return 0;
  }

  private static double pairs(Object value, Object other) {
    return (double) parts(value) * parts(other);
  }

  private static long parts(Object value) {
    return value instanceof ArrayData array ? array.numElements() : Allowance.size(value, 0);
  }
}
