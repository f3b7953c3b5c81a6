package io.statecast.spark.expressions;

import java.math.BigDecimal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;

/** Divides decimals as `div` does; fails where a bigint cannot hold the quotient. Null for a division by zero. */
record WholeQuotient() implements Guard {
  @Override
  public DataType type(DataType dividend) {
    return DataTypes.LongType;
  }

  @Override
  public boolean makesNull() {
    return true;
  }

  @Override
  public Object pass(Object value, Object other) {
    if (!(value instanceof Decimal dividend && other instanceof Decimal divisor)) {
      return null;
    }
    BigDecimal by = divisor.toJavaBigDecimal();
    return by.signum() == 0 ? null : dividend.toJavaBigDecimal().divideToIntegralValue(by).longValueExact();
  }
}
