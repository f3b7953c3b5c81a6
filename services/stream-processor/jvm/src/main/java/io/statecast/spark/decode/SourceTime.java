package io.statecast.spark.decode;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;

/**
 * Reads a moment in the forms that Debezium writes: a count since 1970, or ISO 8601 text.
 *
 * <p>A type in the schema gives the unit of a count. Without a schema, the size of the count gives it, which is right
 * for all moments from March 1973 to 5138: below 10^7 days, below 10^14 milliseconds, below 10^17 microseconds, else
 * nanoseconds. A count that stands for infinity in some unit, or for the last day of 9999, is then refused: by its size
 * it would pass for another moment.
 */
final class SourceTime {
  static final String[] DATES = {"io.debezium.time.Date", "org.apache.kafka.connect.data.Date"};
  static final String[] COUNTS = {
    "io.debezium.time.Timestamp",
    "org.apache.kafka.connect.data.Timestamp",
    "io.debezium.time.MicroTimestamp",
    "io.debezium.time.NanoTimestamp"
  };
  static final String[] ISO_DATES = {"io.debezium.time.IsoDate"};
  static final String[] ISO_MOMENTS = {"io.debezium.time.IsoTimestamp"};
  static final String[] TIMES = {
    "io.debezium.time.Time", "org.apache.kafka.connect.data.Time", "io.debezium.time.MicroTime", "io.debezium.time.NanoTime"
  };

  private static final String[] NO_MOMENTS = {
    "io.debezium.time.Year", "io.debezium.time.MicroDuration", "io.debezium.time.NanoDuration", "io.debezium.data.Bits"
  };

  private static final Instant FIRST = Instant.parse("0001-01-01T00:00:00Z");
  private static final Instant END = Instant.parse("+10000-01-01T00:00:00Z");
  private static final BigDecimal DAY = BigDecimal.valueOf(86_400_000_000L);
  private static final BigDecimal MILLISECOND = BigDecimal.valueOf(1000);
  private static final BigDecimal NANOSECOND = new BigDecimal("0.001");
  private static final int LONGEST_COUNT = 20;
  private static final BigDecimal LAST_LONG = BigDecimal.valueOf(Long.MAX_VALUE);
  /** Infinite dates are counts of days near the limits of 32 bits, not always the same day. */
  private static final BigDecimal FIRST_INFINITE_DATE = BigDecimal.valueOf(10_000_000);
  private static final BigDecimal LAST_INFINITE_DATE = BigDecimal.valueOf(1L << 31);
  private static final BigDecimal LAST_DAY_MS = BigDecimal.valueOf(253_402_214_400_000L);
  private static final BigDecimal DAY_MS = BigDecimal.valueOf(86_400_000);
  private static final long NANOSECONDS_OF_A_DAY = 86_400_000_000_000L;

  private SourceTime() {}

  /**
   * Reads the moment, to the microsecond.
   *
   * @throws IllegalArgumentException if the text is not a moment that a Timestamp of the contract can hold
   */
  static Instant read(String text, DeclaredType declared) {
    try {
      Instant moment = text.matches("-?\\d+") ? counted(text, declared) : written(text);
      if (moment.isBefore(FIRST) || !moment.isBefore(END)) {
        throw new IllegalArgumentException(text);
      }
      return moment;
    } catch (DateTimeException | ArithmeticException e) {
      throw new IllegalArgumentException(text, e);
    }
  }

  /**
   * Returns the time of day for a count since midnight, as PostgreSQL writes it: `10:00:00.5`, and at most `24:00:00`.
   *
   * @throws IllegalArgumentException if the count is not within a day
   */
  static String ofDay(String text, DeclaredType declared) {
    long unit = declared.is(TIMES[0], TIMES[1]) ? 1_000_000 : declared.is(TIMES[2]) ? 1_000 : 1;
    long nanoseconds = Math.multiplyExact(Long.parseLong(text), unit);
    if (nanoseconds == NANOSECONDS_OF_A_DAY) {
      return "24:00:00";
    }
    try {
      return DateTimeFormatter.ISO_LOCAL_TIME.format(LocalTime.ofNanoOfDay(nanoseconds));
    } catch (DateTimeException e) {
      throw new IllegalArgumentException(text, e);
    }
  }

  private static Instant counted(String text, DeclaredType declared) {
    if (text.length() > LONGEST_COUNT || declared.is(TIMES) || declared.is(NO_MOMENTS)) {
      throw new IllegalArgumentException(text);
    }
    BigDecimal count = new BigDecimal(text);
    boolean hasUnit = declared.is(DATES) || declared.is(COUNTS);
    if (hasUnit ? isInfiniteCount(text) : passesForAnother(count)) {
      throw new IllegalArgumentException(text);
    }
    BigDecimal microseconds = count.multiply(unit(count.precision(), declared)).setScale(0, RoundingMode.FLOOR);
    return Instant.EPOCH.plus(microseconds.longValueExact(), ChronoUnit.MICROS);
  }

  /** Returns whether the count is infinity in nanoseconds; in other units, infinity is far beyond 9999. */
  private static boolean isInfiniteCount(String text) {
    return text.equals(Long.toString(Long.MAX_VALUE)) || text.equals(Long.toString(Long.MIN_VALUE));
  }

  /** Returns whether a count without a unit may be an infinite moment or date, or one of the last day of 9999. */
  private static boolean passesForAnother(BigDecimal count) {
    BigDecimal size = count.abs();
    BigDecimal sinceLastDay = count.subtract(LAST_DAY_MS);
    BigDecimal sinceLastDayUs = count.divide(MILLISECOND).subtract(LAST_DAY_MS);
    return LAST_LONG.subtract(size).compareTo(BigDecimal.valueOf(NANOSECONDS_OF_A_DAY)) < 0
        || size.compareTo(FIRST_INFINITE_DATE) >= 0 && size.compareTo(LAST_INFINITE_DATE) <= 0
        || isWithinDay(sinceLastDay)
        || isWithinDay(sinceLastDayUs);
  }

  private static boolean isWithinDay(BigDecimal milliseconds) {
    return milliseconds.signum() >= 0 && milliseconds.compareTo(DAY_MS) < 0;
  }

  /** Returns the microseconds in the unit of a count with so many digits. */
  private static BigDecimal unit(int digits, DeclaredType declared) {
    boolean sized = !declared.is(DATES) && !declared.is(COUNTS);
    if (declared.is(DATES) || sized && digits <= 7) {
      return DAY;
    }
    if (declared.is(COUNTS[0], COUNTS[1]) || sized && digits <= 14) {
      return MILLISECOND;
    }
    return declared.is(COUNTS[2]) || sized && digits <= 17 ? BigDecimal.ONE : NANOSECOND;
  }

  /** Reads a moment from ISO 8601 text; without an offset it is in UTC, as Debezium writes it. */
  private static Instant written(String text) {
    String iso = text.replace(' ', 'T');
    if (iso.indexOf('T') < 0) {
      return LocalDate.parse(iso.endsWith("Z") ? iso.substring(0, iso.length() - 1) : iso).atStartOfDay(ZoneOffset.UTC).toInstant();
    }
    boolean hasOffset = iso.endsWith("Z") || iso.substring(iso.indexOf('T')).matches(".*[+-]\\d\\d(:?\\d\\d)?");
    Instant moment = hasOffset ? OffsetDateTime.parse(iso).toInstant() : LocalDateTime.parse(iso).toInstant(ZoneOffset.UTC);
    return moment.minusNanos(moment.getNano() % 1000);
  }
}
