package io.statecast.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.Seq;

/**
 * Passes on a text that a function will match with a pattern; fails if that takes more than {@link #MAX_STEPS}.
 *
 * <p>Some patterns backtrack for hours over some texts, and Java's matcher cannot be interrupted. So the text is
 * matched here first, and each character that the matcher looks at counts.
 */
public final class Matched extends Interpreted {
  /** Characters that a match may look at: some tenths of a second, and far more than any sound pattern does. */
  static final int MAX_STEPS = 20_000_000;

  private transient Pattern pattern;

  /** Takes a `regex` as Java writes them; `all` is whether the function looks for all matches and not for the first. */
  public Matched(Expression text, String regex, boolean all) {
    this(text, Literal.create(regex, DataTypes.StringType), Literal.create(all, DataTypes.BooleanType));
  }

  private Matched(Expression text, Expression regex, Expression all) {
    super(text, regex, all);
  }

  @Override
  public Object eval(InternalRow row) {
    Object text = value(0, row);
    if (text != null) {
      if (pattern == null) {
        pattern = Pattern.compile(value(1, row).toString());
      }
      Counted counted = new Counted(text.toString());
      Matcher matcher = pattern.matcher(counted);
      boolean all = (Boolean) value(2, row);
      while (matcher.find() && all) {}
      Allowance.take(counted.steps); // a lambda may match many texts
    }
    return text;
  }

  @Override
  Expression copyOf(Seq<Expression> children) {
    return new Matched(children.apply(0), children.apply(1), children.apply(2));
  }

  private static final class Counted implements CharSequence {
    private final String text;
    private int steps;

    Counted(String text) {
      this.text = text;
    }

    @Override
    public char charAt(int index) {
      if (++steps > MAX_STEPS) {
        throw new Allowance.ExceededException();
      }
      return text.charAt(index);
    }

    @Override
    public int length() {
      return text.length();
    }

    @Override
    public CharSequence subSequence(int start, int end) {
      return text.substring(start, end);
    }

    @Override
    public String toString() {
      return text;
    }
  }
}
