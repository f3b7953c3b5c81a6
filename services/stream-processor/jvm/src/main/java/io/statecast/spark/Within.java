package io.statecast.spark;

import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import scala.collection.immutable.Seq;

/** Passes on a number or date from `low` up to below `high`; null for another one, and for NaN. */
public final class Within extends Interpreted {
  private static final DataType BOUND = DataTypes.createDecimalType(38, 9);

  public Within(Expression argument, BigDecimal low, BigDecimal high) {
    this(argument, Literal.create(low, BOUND), Literal.create(high, BOUND));
  }

  private Within(Expression argument, Expression low, Expression high) {
    super(argument, low, high);
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    Object argument = value(0, row);
    return isWithin(argument, bound(1, row), bound(2, row)) ? argument : null;
  }

  /** Returns whether the value is a number or date from `low` up to below `high`. */
  static boolean isWithin(Object value, BigDecimal low, BigDecimal high) {
    BigDecimal number = exact(value);
    return number != null && number.compareTo(low) >= 0 && number.compareTo(high) < 0;
  }

  private static BigDecimal exact(Object number) {
    if (number instanceof Decimal decimal) {
      return decimal.toJavaBigDecimal();
    } else if (number instanceof Double || number instanceof Float) {
      double value = ((Number) number).doubleValue();
      return Double.isFinite(value) ? new BigDecimal(value) : null;
    }
    return number == null ? null : BigDecimal.valueOf(((Number) number).longValue());
  }

  private BigDecimal bound(int child, InternalRow row) {
    return ((Decimal) value(child, row)).toJavaBigDecimal();
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Within(children.apply(0), children.apply(1), children.apply(2));
  }
}
