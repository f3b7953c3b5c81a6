package io.statecast.spark.expressions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.immutable.Seq;

/** Returns an expression's input row as it is, where Spark would make an object of it. */
public final class InputRow extends Interpreted {
  private static final long serialVersionUID = 1L;

  @Override
  public Object eval(InternalRow row) {
    return row;
  }

  @Override
  public DataType dataType() {
    return new ObjectType(InternalRow.class);
  }

  @Override
  public boolean nullable() {
    return false;
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return this;
  }
}
