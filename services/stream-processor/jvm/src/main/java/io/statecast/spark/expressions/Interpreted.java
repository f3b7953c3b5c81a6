package io.statecast.spark.expressions;

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
 * Computes an expression without generated code; as a rule, it wraps another one, and has its type.
 *
 * <p>With generated code, Spark would compute an expression that occurs twice only once, ahead of both and so outside
 * of its wrapper.
 */
abstract class Interpreted extends Expression implements CodegenFallback, Serializable {
  private final Seq<Expression> children;

  /** Makes an expression with these children; it wraps the first. */
  Interpreted(Expression... children) {
    this.children = CollectionConverters.asScala(List.of(children)).toSeq();
  }

  /** Returns the same expression with other children. */
  abstract Expression copyOf(Seq<Expression> children);

  /** Returns the value of the child with this number. */
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
    return copyOf(newChildren);
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
    return isLike(other) && ((Interpreted) other).children.equals(children);
  }

  /** Returns whether the other does the same to its children. */
  boolean isLike(Object other) {
    return other != null && other.getClass() == getClass();
  }

  @Override
  public final int hashCode() {
    return 31 * getClass().getName().hashCode() + children.hashCode();
  }
}
