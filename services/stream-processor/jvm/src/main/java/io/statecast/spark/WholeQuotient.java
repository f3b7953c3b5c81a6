package io.statecast.spark;

import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import scala.collection.immutable.Seq;

/** Divides decimals as `div` does; fails where a bigint cannot hold the quotient. Null for a division by zero. */
public final class WholeQuotient extends Interpreted {
  public WholeQuotient(Expression dividend, Expression divisor) {
    super(dividend, divisor);
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    if (!(value(0, row) instanceof Decimal dividend && value(1, row) instanceof Decimal divisor)) {
      return null;
    }
    BigDecimal by = divisor.toJavaBigDecimal();
    return by.signum() == 0 ? null : dividend.toJavaBigDecimal().divideToIntegralValue(by).longValueExact();
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new WholeQuotient(children.apply(0), children.apply(1));
  }
}
