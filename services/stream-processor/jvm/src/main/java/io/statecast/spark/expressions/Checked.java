package io.statecast.spark.expressions;

import java.io.Serializable;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Abs;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayDistinct;
import org.apache.spark.sql.catalyst.expressions.ArrayExcept;
import org.apache.spark.sql.catalyst.expressions.ArrayIntersect;
import org.apache.spark.sql.catalyst.expressions.ArrayUnion;
import org.apache.spark.sql.catalyst.expressions.ArraysOverlap;
import org.apache.spark.sql.catalyst.expressions.BRound;
import org.apache.spark.sql.catalyst.expressions.BinaryPredicate;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Ceil;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.Conv;
import org.apache.spark.sql.catalyst.expressions.DateAdd;
import org.apache.spark.sql.catalyst.expressions.DateDiff;
import org.apache.spark.sql.catalyst.expressions.DateFromUnixDate;
import org.apache.spark.sql.catalyst.expressions.DateSub;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Floor;
import org.apache.spark.sql.catalyst.expressions.FromUnixTime;
import org.apache.spark.sql.catalyst.expressions.GetArrayItem;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.InitCap;
import org.apache.spark.sql.catalyst.expressions.IntegralDivide;
import org.apache.spark.sql.catalyst.expressions.LastDay;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.Levenshtein;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MultiLikeBase;
import org.apache.spark.sql.catalyst.expressions.NextDay;
import org.apache.spark.sql.catalyst.expressions.NumericEvalContext;
import org.apache.spark.sql.catalyst.expressions.Overlay;
import org.apache.spark.sql.catalyst.expressions.Pmod;
import org.apache.spark.sql.catalyst.expressions.RLike;
import org.apache.spark.sql.catalyst.expressions.RegExpExtract;
import org.apache.spark.sql.catalyst.expressions.RegExpExtractAll;
import org.apache.spark.sql.catalyst.expressions.RegExpInStr;
import org.apache.spark.sql.catalyst.expressions.RegExpReplace;
import org.apache.spark.sql.catalyst.expressions.Remainder;
import org.apache.spark.sql.catalyst.expressions.Round;
import org.apache.spark.sql.catalyst.expressions.String2TrimExpression;
import org.apache.spark.sql.catalyst.expressions.StringInstr;
import org.apache.spark.sql.catalyst.expressions.StringLocate;
import org.apache.spark.sql.catalyst.expressions.StringReplace;
import org.apache.spark.sql.catalyst.expressions.StringSplit;
import org.apache.spark.sql.catalyst.expressions.StringTrim;
import org.apache.spark.sql.catalyst.expressions.StringTrimLeft;
import org.apache.spark.sql.catalyst.expressions.StringTrimRight;
import org.apache.spark.sql.catalyst.expressions.SubstringIndex;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.UnixDate;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces the parts of a resolved expression that would make another number or time of one that their type cannot
 * hold: they give null or fail, which {@link Attempt} turns into null.
 *
 * <p>It sees the types, and the casts that Spark adds: `substring(name, l)` has one of a bigint to an int. What has
 * been replaced stays as it is when Spark changes the expression, and it comes here again.
 */
final class Checked extends AbstractPartialFunction<Expression, Expression> implements Serializable {
  private static final long serialVersionUID = 1L;
  /** The functions that compare each part of their first argument with each of the second, or of the first again. */
  private static final Map<Class<?>, Metered> PAIRING =
      Map.ofEntries(
          Map.entry(Contains.class, Metered.SEARCH),
          Map.entry(InitCap.class, Metered.SEARCH),
          Map.entry(StringInstr.class, Metered.SEARCH),
          Map.entry(StringLocate.class, Metered.SEARCH),
          Map.entry(StringReplace.class, Metered.SEARCH),
          Map.entry(StringTrim.class, Metered.TABLE),
          Map.entry(StringTrimLeft.class, Metered.TABLE),
          Map.entry(StringTrimRight.class, Metered.TABLE),
          Map.entry(SubstringIndex.class, Metered.SEARCH),
          Map.entry(Levenshtein.class, Metered.TABLE),
          Map.entry(ArrayDistinct.class, Metered.COMPARE),
          Map.entry(ArrayExcept.class, Metered.COMPARE),
          Map.entry(ArrayIntersect.class, Metered.COMPARE),
          Map.entry(ArrayUnion.class, Metered.COMPARE),
          Map.entry(ArraysOverlap.class, Metered.COMPARE));

  private static final BigDecimal BEYOND_INT = BigDecimal.valueOf(2).pow(31);

  private Checked() {}

  /** Returns the expression, which is resolved, with its parts replaced. */
  static Expression of(Expression resolved) {
    return (Expression) resolved.transformUp(new Checked());
  }

  @Override
  public boolean isDefinedAt(Expression expression) {
    return true;
  }

  @Override
  public Expression apply(Expression expression) {
    if (expression instanceof Cast cast) {
      return cast(cast);
    } else if (expression instanceof UnaryMinus minus) {
      return new UnaryMinus(minus.child(), true);
    } else if (expression instanceof Abs abs) {
      return new Abs(abs.child(), true);
    } else if (expression instanceof Round round) {
      return new Round(round.child(), round.scale(), true);
    } else if (expression instanceof BRound round) {
      return new BRound(round.child(), round.scale(), true);
    } else if (expression instanceof Conv conv) {
      return new Conv(conv.numExpr(), conv.fromBaseExpr(), conv.toBaseExpr(), true);
    } else if (expression instanceof IntegralDivide division) {
      return quotient(division);
    } else if (expression instanceof Pmod remainder && remainder.dataType() instanceof IntegralType) {
      return positive(new Remainder(remainder.left(), remainder.right(), orNull()), remainder.right());
    } else if (expression instanceof Floor || expression instanceof Ceil) {
      boolean ofDouble = expression.children().head().dataType().equals(DataTypes.DoubleType);
      return ofDouble ? within(expression, Within.BEYOND_LONG.negate(), Within.BEYOND_LONG, 0) : expression;
    } else if (expression instanceof GetArrayItem item) {
      return new GetArrayItem(item.child(), whole(item.ordinal()), item.failOnError());
    }
    return text(date(paired(expression)));
  }

  private static Expression cast(Cast cast) {
    DataType type = cast.dataType();
    Expression checked = isWhole(type) ? new Cast(cast.child(), type, cast.timeZoneId(), EvalMode.TRY()) : cast;
    if (type instanceof DecimalType && cast.child().dataType() instanceof StringType) {
      // Java reads the digits of a number in a time that grows with their square.
      return guarded(checked, 0, Metered.SEARCH);
    }
    boolean cuts = Within.Type.cuts(cast.child().dataType(), type);
    return cuts ? guarded(checked, 0, new Within.Type(cast.child().dataType().asNullable(), type)) : checked;
  }

  private static boolean isWhole(DataType type) {
    if (type instanceof ArrayType array) {
      return isWhole(array.elementType());
    } else if (type instanceof StructType struct) {
      return Arrays.stream(struct.fields()).anyMatch(field -> isWhole(field.dataType()));
    }
    return type instanceof IntegralType;
  }

  private static Expression quotient(IntegralDivide division) {
    boolean ofDecimals = division.left().dataType() instanceof DecimalType;
    return ofDecimals
        ? new Guarded(new WholeQuotient(), division.left(), division.right())
        : new IntegralDivide(division.left(), division.right(), orNull());
  }

  /** Adds a divisor above 0 to a remainder below 0. One below 0 changes nothing, and Spark's own sum with it wraps. */
  private static Expression positive(Expression remainder, Expression divisor) {
    Expression zero = tried(new Literal(0, DataTypes.IntegerType), remainder.dataType());
    Expression moves = new And(new LessThan(remainder, zero), new LessThan(zero, divisor));
    return new If(moves, new Add(remainder, divisor, orNull()), remainder);
  }

  private static Expression date(Expression expression) {
    if (expression instanceof DateAdd sum) {
      return new DateFromUnixDate(new Add(new UnixDate(sum.startDate()), whole(sum.days()), orNull()));
    } else if (expression instanceof DateSub difference) {
      return new DateFromUnixDate(
          new Subtract(new UnixDate(difference.startDate()), whole(difference.days()), orNull()));
    } else if (expression instanceof DateDiff difference) {
      return new Subtract(new UnixDate(difference.endDate()), new UnixDate(difference.startDate()), orNull());
    } else if (expression instanceof LastDay || expression instanceof NextDay) {
      // The last month that a date can be in has no end, and its last week no next day.
      return within(expression, BEYOND_INT.negate(), BEYOND_INT.subtract(BigDecimal.valueOf(31)), 0);
    } else if (expression instanceof FromUnixTime) {
      return within(expression, Within.BEYOND_SECONDS.negate(), Within.BEYOND_SECONDS, 0);
    }
    return expression;
  }

  /** Takes the time from the allowance in which a function compares the parts of its arguments with each other. */
  private static Expression paired(Expression expression) {
    boolean ofBytes = expression instanceof BinaryPredicate predicate && predicate.prettyName().equals("contains");
    Metered cost = ofBytes ? Metered.SEARCH : PAIRING.get(expression.getClass());
    List<Expression> arguments = CollectionConverters.asJava(expression.children());
    boolean ofSpaces = expression instanceof String2TrimExpression && arguments.size() == 1;
    if (cost == null || ofSpaces || cost == Metered.COMPARE && !isNotHashed(arguments.get(0).dataType())) {
      return expression;
    }
    int compared = Math.min(arguments.size(), 2);
    return guarded(expression, 0, cost, arguments.subList(1, compared).toArray(Expression[]::new));
  }

  /** Returns whether Spark compares the elements of such arrays one by one, and makes no set of their hashes. */
  private static boolean isNotHashed(DataType type) {
    return type instanceof ArrayType array && !TypeUtils.typeWithProperEquals(array.elementType());
  }

  private static Expression text(Expression expression) {
    if (expression instanceof Overlay) {
      BigDecimal half = BigDecimal.valueOf(2).pow(30);
      return within(within(expression, half.negate(), half, 2), half.negate(), half, 3);
    } else if (expression instanceof SubstringIndex) {
      return within(expression, BEYOND_INT.negate().add(BigDecimal.ONE), BEYOND_INT, 2);
    } else if (expression instanceof Like like && like.right() instanceof Literal pattern && pattern.value() != null) {
      return matched(expression, likeRegex(pattern.value().toString(), like.escapeChar()), false);
    } else if (expression instanceof MultiLikeBase likes) {
      Expression result = expression;
      for (Object pattern : CollectionConverters.asJava(likes.patterns())) {
        result = pattern == null ? result : matched(result, likeRegex(pattern.toString(), '\\'), false);
      }
      return result;
    }
    boolean first =
        expression instanceof RLike || expression instanceof RegExpExtract || expression instanceof RegExpInStr;
    boolean all =
        expression instanceof RegExpExtractAll
            || expression instanceof RegExpReplace
            || expression instanceof StringSplit;
    boolean isConstant = (first || all) && expression.children().apply(1) instanceof Literal;
    Object regex = isConstant ? ((Literal) expression.children().apply(1)).value() : null;
    return regex == null ? expression : matched(expression, regex.toString(), all);
  }

  private static String likeRegex(String pattern, char escape) {
    return "\\A" + StringUtils.escapeLikeRegex(pattern, escape) + "\\z";
  }

  /** Bounds the matching of the first argument, where the pattern repeats something. */
  private static Expression matched(Expression expression, String regex, boolean all) {
    boolean repeats = regex.chars().anyMatch(sign -> "*+{".indexOf(sign) >= 0);
    return repeats ? guarded(expression, 0, new Matched(regex, all)) : expression;
  }

  /** Makes the argument with this number null outside of its range. */
  private static Expression within(Expression expression, BigDecimal low, BigDecimal high, int argument) {
    return guarded(expression, argument, new Within(low, high));
  }

  /** Lets the argument with this number pass a guard, with another value beside it for some; once if it comes again. */
  private static Expression guarded(Expression expression, int number, Guard guard, Expression... other) {
    List<Expression> arguments = new ArrayList<>(CollectionConverters.asJava(expression.children()));
    Expression argument = arguments.get(number);
    if (Guarded.has(argument, guard)) {
      return expression;
    }
    Expression[] children = Stream.concat(Stream.of(argument), Stream.of(other)).toArray(Expression[]::new);
    arguments.set(number, new Guarded(guard, children));
    return expression.withNewChildren(CollectionConverters.asScala(arguments).toSeq());
  }

  private static Expression whole(Expression number) {
    return tried(number, DataTypes.IntegerType);
  }

  private static Expression tried(Expression number, DataType type) {
    return number.dataType().equals(type) ? number : new Cast(number, type, Option.empty(), EvalMode.TRY());
  }

  private static NumericEvalContext orNull() {
    return new NumericEvalContext(EvalMode.TRY(), true);
  }
}
