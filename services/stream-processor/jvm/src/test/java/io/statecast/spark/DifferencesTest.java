package io.statecast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

class DifferencesTest {
  private static final StructType ENTRY =
      new StructType().add("key", "string").add("rows", "bigint", false).add("sum_0", "bigint").add("max_1", "bigint");
  private static final ArrayData NOTHING = entries();

  @Test
  void aRowThatMovesLeavesOneGroupAndEntersTheOther() {
    assertEquals(
        List.of("a -1 -5 null 1", "b 1 7 7 1"),
        lines(Differences.Lines.CHANGED, entries(entry("a", 1, 5)), entries(entry("b", 1, 7)), NOTHING, true, true));
  }

  @Test
  void aGroupThatStaysTheSameHasALineOnlyWhereEveryGroupHas() {
    ArrayData same = entries(entry("a", 1, 5));

    assertEquals(List.of(), lines(Differences.Lines.CHANGED, same, same, NOTHING, true, true));
    assertEquals(List.of("a 0 0 5 true true"), lines(Differences.Lines.EVERY, same, same, same, true, true));
  }

  @Test
  void aChangeWithoutEffectHasTheTickThatItStates() {
    assertEquals(
        List.of("a 0 null null 1"),
        lines(Differences.Lines.STATED, NOTHING, entries(entry("a", 1, 5)), entries(entry("a", 1, 4)), false, true));
  }

  @Test
  void aDifferenceThatIsNotStatedHasATickOfAChangeThatDoesNotKnowItsBefore() {
    ArrayData now = entries(entry("a", 1, 5));
    ArrayData before = entries(entry("a", 1, 4));

    assertEquals(List.of("a 0 1 5 0"), lines(Differences.Lines.STATED, before, now, now, true, true));
    assertEquals(List.of("a 0 1 5 1"), lines(Differences.Lines.STATED, before, now, now, true, false));
  }

  @Test
  void theTicksOfATableThatIsTruncatedAndTheRowsInAGroupHaveOneSum() {
    ArrayData now = entries(entry("a", 1, 5));

    assertEquals(List.of("a 1 5 5 1"), lines(Differences.Lines.TRUNCATED, NOTHING, now, NOTHING, true, true));
    assertEquals(List.of("a 0 null null 2"), lines(Differences.Lines.TRUNCATED, NOTHING, now, NOTHING, false, true));
    assertEquals(List.of("a -1 -5 null 1"), lines(Differences.Lines.TRUNCATED, now, NOTHING, NOTHING, true, true));
  }

  private static List<String> lines(
      Differences.Lines lines, ArrayData left, ArrayData entered, ArrayData stated, boolean applied, boolean complete) {
    Differences differences = new Differences(GroupPart.all(List.of("sum", "max"), ENTRY), ENTRY, lines);
    StructType type = differences.result();
    ArrayData result = differences.call(left, entered, stated, applied, complete);
    return IntStream.range(0, result.numElements())
        .mapToObj(i -> String.join(" ", texts(new RowReader(type).values(result.getStruct(i, type.size())))))
        .toList();
  }

  private static List<String> texts(Object[] values) {
    return Arrays.stream(values).map(String::valueOf).toList();
  }

  private static InternalRow entry(String key, long rows, long value) {
    return new GenericInternalRow(new Object[] {UTF8String.fromString(key), rows, value, value});
  }

  private static ArrayData entries(InternalRow... entries) {
    return new GenericArrayData(entries);
  }
}
