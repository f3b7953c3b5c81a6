package io.statecast.spark.expressions;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Concat;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.NumericEvalContext;
import org.apache.spark.sql.catalyst.expressions.OctetLength;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.RLike;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes parsed SQL safe before Spark resolves it: integers do not wrap, and no value of a row ends a query.
 *
 * <p>The SQL of a pipeline's file is in a call of {@link #ATTEMPT}, which no file can call.
 */
public final class RowExpressions {
  /** The name under which SQL calls {@link Attempt}. */
  public static final String ATTEMPT = "__attempt";

  /** The functions with a result that can be much longer than their arguments, and the number of copies in it. */
  private static final Map<String, Copies> COPYING =
      Map.of(
          "repeat", arguments -> arguments.get(1),
          "replace", arguments -> arguments.size() < 3 ? number(1) : longer(arguments.get(2)),
          "regexp_replace", arguments -> longer(arguments.get(2)),
          "concat_ws", arguments -> longer(arguments.get(0)),
          "array_join", arguments -> longer(new Concat(seq(arguments.subList(1, arguments.size())))),
          "flatten", arguments -> number(1));

  /** The functions that fill a text up to a length. */
  private static final Set<String> PADDING = Set.of("lpad", "rpad");

  /** The functions that return one of their arguments, and make nothing. */
  private static final Set<String> CHOOSING =
      Set.of("coalesce", "greatest", "if", "ifnull", "least", "nullif", "nvl", "nvl2", "get");

  private static final Set<String> PATTERNED =
      Set.of(
          "regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like",
          "regexp_replace", "regexp_substr", "rlike", "split");

  private RowExpressions() {}

  private interface Copies {
    Expression of(List<Expression> arguments);
  }

  /** Makes the expression safe. Throws IllegalArgumentException for a constant that is not a pattern. */
  public static Expression safe(Expression parsed) {
    return safe(parsed, false, false);
  }

  private static Expression safe(Expression parsed, boolean ofFile, boolean inLambda) {
    boolean attempt = name(parsed).equals(ATTEMPT);
    boolean calls = parsed instanceof UnresolvedFunction || parsed instanceof RLike || parsed instanceof Like;
    List<Expression> children = new ArrayList<>();
    for (Expression each : CollectionConverters.asJava(parsed.children())) {
      Expression child = safe(each, ofFile || attempt, ofFile && (inLambda || parsed instanceof LambdaFunction));
      boolean isRead = inLambda && calls && !(child instanceof Literal || child instanceof LambdaFunction);
      children.add(isRead ? new Guarded(Metered.READ, child) : child);
    }
    if (attempt) {
      return cannotFail(children.get(0)) ? children.get(0) : new Attempt(children.get(0));
    }
    Expression expression = children.isEmpty() ? parsed : parsed.withNewChildren(seq(children));
    return ofFile ? limited(orNull(expression), children) : orNull(expression);
  }

  /** Returns whether the expression only names and compares values, which always succeeds and makes nothing. */
  private static boolean cannotFail(Expression expression) {
    boolean compares =
        expression instanceof BinaryComparison
            || expression instanceof And
            || expression instanceof Or
            || expression instanceof Not
            || expression instanceof IsNull
            || expression instanceof IsNotNull
            || expression instanceof In
            || expression instanceof Literal
            || expression instanceof UnresolvedAttribute;
    return compares && expression.children().forall(RowExpressions::cannotFail);
  }

  /**
   * Gives sums, differences and products the mode of Spark's own `try_add`: null if their type cannot hold the result.
   */
  private static Expression orNull(Expression expression) {
    if (expression instanceof Add add) {
      return new Add(add.left(), add.right(), orNull(add.evalContext()));
    } else if (expression instanceof Subtract subtract) {
      return new Subtract(subtract.left(), subtract.right(), orNull(subtract.evalContext()));
    } else if (expression instanceof Multiply multiply) {
      return new Multiply(multiply.left(), multiply.right(), orNull(multiply.evalContext()));
    }
    return expression;
  }

  private static NumericEvalContext orNull(NumericEvalContext context) {
    return new NumericEvalContext(EvalMode.TRY(), context.allowDecimalPrecisionLoss());
  }

  private static Expression limited(Expression expression, List<Expression> arguments) {
    String name = name(expression);
    checkPattern(expression, name, arguments);
    if (expression instanceof LambdaFunction) {
      List<Expression> bodyAndNames = new ArrayList<>(arguments);
      bodyAndNames.set(0, new Guarded(Metered.COPY, arguments.get(0)));
      return expression.withNewChildren(seq(bodyAndNames));
    } else if (expression instanceof Cast || expression instanceof Concat) {
      return new Guarded(Metered.RESULT, copied(expression, arguments, number(1)));
    } else if (!(expression instanceof UnresolvedFunction) || CHOOSING.contains(name)) {
      return expression;
    } else if (COPYING.containsKey(name)) {
      return new Guarded(Metered.RESULT, copied(expression, arguments, COPYING.get(name).of(arguments)));
    } else if (PADDING.contains(name)) {
      List<Expression> padded = new ArrayList<>(arguments);
      padded.set(1, new Guarded(Metered.COPIES, arguments.get(1), arguments.get(1)));
      return new Guarded(Metered.RESULT, expression.withNewChildren(seq(padded)));
    }
    return new Guarded(Metered.RESULT, expression);
  }

  private static Expression copied(Expression expression, List<Expression> arguments, Expression copies) {
    List<Expression> limited = new ArrayList<>();
    for (Expression each : arguments) {
      limited.add(each instanceof Literal ? each : new Guarded(Metered.COPIES, each, copies));
    }
    return expression.withNewChildren(seq(limited));
  }

  private static Expression number(long number) {
    return new Literal(number, DataTypes.LongType);
  }

  /**
   * Returns how many times longer another text may become with this one between its bytes: this one's bytes and one.
   */
  private static Expression longer(Expression text) {
    return new Add(new OctetLength(text), number(1));
  }

  private static void checkPattern(Expression expression, String name, List<Expression> arguments) {
    boolean patterned = expression instanceof RLike || PATTERNED.contains(name);
    String pattern = patterned ? text(arguments.get(1)) : null;
    if (pattern == null) {
      return;
    }
    try {
      Pattern.compile(pattern);
      String replacement = name.equals("regexp_replace") ? text(arguments.get(2)) : null;
      if (replacement != null) {
        // The empty text matches first, and the groups keep their numbers.
        Pattern.compile("(?:)|" + pattern).matcher("").replaceFirst(replacement);
      }
    } catch (IllegalArgumentException | IndexOutOfBoundsException error) {
      throw new IllegalArgumentException(
          "'" + pattern + "' in " + (name.isEmpty() ? "rlike" : name) + ": " + error.getMessage(), error);
    }
  }

  private static String text(Expression expression) {
    return expression instanceof Literal literal && literal.value() instanceof UTF8String text ? text.toString() : null;
  }

  /** Returns the name of the called function in lower case; empty if the expression is not a call. */
  private static String name(Expression expression) {
    return expression instanceof UnresolvedFunction function
        ? function.nameParts().last().toLowerCase(Locale.ROOT)
        : "";
  }

  private static Seq<Expression> seq(List<Expression> expressions) {
    return CollectionConverters.asScala(expressions).toSeq();
  }
}
