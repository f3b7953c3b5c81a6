package io.statecast.spark.expressions;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Fails for a text that a function would match with a pattern for more than {@link #MAX_STEPS}.
 *
 * <p>Some patterns backtrack for hours over some texts, and Java's matcher cannot be interrupted. So the text is
 * matched here first, and each character that the matcher looks at counts. A text that is too short for so many steps is
 * not.
 */
final class Matched implements Guard {
  private static final long serialVersionUID = 1L;

  /** Characters that a match may look at: some tenths of a second, and far more than any sound pattern does. */
  static final int MAX_STEPS = 20_000_000;

  private final Pattern pattern;
  private final boolean all;
  /** The bytes of the longest text that is not matched here. */
  private final int harmless;

  /** Takes a `regex` as Java writes them; `all` is whether the function looks for all matches and not for the first. */
  Matched(String regex, boolean all) {
    this.pattern = Pattern.compile(regex);
    this.all = all;
    this.harmless = harmless(regex);
  }

  /** Returns how long a text may be that cannot take too many steps; without groups, each repetition is a power more. */
  private static int harmless(String regex) {
    String pattern = regex.replace("(?s)", "");
    long repetitions = pattern.chars().filter(sign -> "*+?{".indexOf(sign) >= 0).count();
    double steps = (double) MAX_STEPS / regex.length();
    return pattern.indexOf('(') >= 0 ? 0 : (int) Math.pow(steps, 1.0 / (repetitions + 1)) - 1;
  }

  @Override
  public Object pass(Object text, Object none) {
    if (text != null && ((UTF8String) text).numBytes() > harmless) {
      Counted counted = new Counted(text.toString());
      Matcher matcher = pattern.matcher(counted);
      while (matcher.find() && all) {}
      Allowance.take(counted.steps); // a lambda may match many texts
    }
    return text;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Matched that && that.all == all && that.pattern.pattern().equals(pattern.pattern());
  }

  @Override
  public int hashCode() {
    return pattern.pattern().hashCode();
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
