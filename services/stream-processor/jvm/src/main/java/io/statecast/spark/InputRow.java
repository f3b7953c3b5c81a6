package io.statecast.spark;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The row that an expression is computed of, as it is: where Spark would make an object of it, nothing is made. */
public final class InputRow extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;

  @Override
  public Object eval(InternalRow row) {
    return row;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
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
  public Seq<Expression> children() {
    return CollectionConverters.asScala(List.<Expression>of()).toSeq();
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return this;
  }

  @Override
  public int productArity() {
    return 0;
  }

  @Override
  public Object productElement(int number) {
    throw new IndexOutOfBoundsException(number);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof InputRow;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other);
  }

  @Override
  public int hashCode() {
    return InputRow.class.hashCode();
  }
}
