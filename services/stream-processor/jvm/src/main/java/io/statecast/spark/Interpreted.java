package io.statecast.spark;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An expression without generated code; as a rule something around another one, which has its type.
 *
 * <p>With code Spark would compute an expression that stands in two places once, ahead of
 * both and so outside of what is around it.
 */
abstract class Interpreted extends Expression implements CodegenFallback, Serializable {
  private final Seq<Expression> children;

  /** The first of the children is the one that this is around. */
  Interpreted(Expression... children) {
    this.children = CollectionConverters.asScala(List.of(children)).toSeq();
  }

  /** The same around other children. */
  abstract Expression around(Seq<Expression> children);

  /** The value of the child with this number. */
  final Object value(int child, InternalRow row) {
    return children.apply(child).eval(row);
  }

  @Override
  public final Seq<Expression> children() {
    return children;
  }

  @Override
  public DataType dataType() {
    return children.head().dataType();
  }

  @Override
  public boolean nullable() {
    return children.head().nullable();
  }

  @Override
  public boolean foldable() {
    return children.forall(Expression::foldable);
  }

  @Override
  public final ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public final Expression withNewChildrenInternal(IndexedSeq<Expression> newChildren) {
    return around(newChildren);
  }

  @Override
  public final int productArity() {
    return children.size();
  }

  @Override
  public final Object productElement(int number) {
    return children.apply(number);
  }

  @Override
  public final boolean canEqual(Object other) {
    return getClass().isInstance(other);
  }

  @Override
  public final boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((Interpreted) other).children.equals(children);
  }

  @Override
  public final int hashCode() {
    return 31 * getClass().getName().hashCode() + children.hashCode();
  }
}
