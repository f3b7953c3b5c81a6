package io.statecast.spark.groups;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BoundedBagTest {
  private static final int MAX = 8;
  private static final int MAX_BYTES = 1_000;

  /** Checks that bags in which values come and go in any order know the first values, and whether there are more. */
  @ParameterizedTest
  @ValueSource(ints = {3, 8, 9, 30})
  void theFirstValuesAreThoseOfAPlainBag(int different) {
    for (int seed = 0; seed < 200; seed++) {
      Random chance = new Random(seed);
      List<Long> there = new ArrayList<>();
      byte[] written = null;
      for (int batch = 0; batch < 10; batch++) {
        List<Runnable> counts = new ArrayList<>();
        BoundedBag bag = bag(written);
        for (int step = 0; step < 12; step++) {
          boolean goes = !there.isEmpty() && chance.nextInt(10) < (batch < 5 ? 3 : 7);
          long value = goes ? there.remove(chance.nextInt(there.size())) : chance.nextInt(different) - different / 2L;
          if (!goes) {
            there.add(value);
          }
          counts.add(() -> bag.count(SortedBytes.of(value), goes ? -1 : 1));
        }
        Collections.shuffle(counts, chance);
        counts.forEach(Runnable::run);
        written = bag.bytes();
        check(bag, there);
      }
    }
  }

  private static void check(BoundedBag bag, List<Long> there) {
    List<Long> sorted = List.copyOf(new TreeSet<>(there));
    List<Long> first = bag.first(MAX / 2, MAX_BYTES).stream().map(SortedBytes::toLong).toList();

    assertEquals(sorted.subList(0, first.size()), first);
    assertEquals(sorted.size() > first.size(), bag.hasMoreThan(first.size()));
  }

  @Test
  void aBagKnowsAllAgainWhenWhatWasTooMuchHasGone() {
    BoundedBag bag = bag(null);
    for (long value = 0; value < 3 * MAX; value++) {
      bag.count(SortedBytes.of(value), 1);
    }
    for (long value = 2; value < 3 * MAX; value++) {
      bag.count(SortedBytes.of(value), -1);
    }

    assertFalse(bag.hasMoreThan(2));
    assertEquals(List.of(0L, 1L), bag.first(MAX, MAX_BYTES).stream().map(SortedBytes::toLong).toList());
  }

  @Test
  void textsAreInTheOrderOfTheirCodePoints() {
    BoundedBag bag = bag(null);
    for (String text : List.of("\uD83D\uDE00", "b", "\uFFFD", "", "a")) {
      bag.count(text.getBytes(StandardCharsets.UTF_8), 1);
    }

    List<String> first =
        bag.first(9, MAX_BYTES).stream().map(each -> new String(each, StandardCharsets.UTF_8)).toList();
    assertEquals(List.of("", "a", "b", "\uFFFD", "\uD83D\uDE00"), first);
  }

  private static BoundedBag bag(byte[] written) {
    return BoundedBag.of(written, MAX, MAX_BYTES);
  }
}
