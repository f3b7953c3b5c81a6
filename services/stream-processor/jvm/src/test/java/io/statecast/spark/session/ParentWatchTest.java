package io.statecast.spark.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;

class ParentWatchTest {
  @Test
  void itActsOnceTheProcessIsGone() {
    Iterator<Boolean> alive = List.of(true, true, false).iterator();
    List<String> done = new ArrayList<>();

    ParentWatch.await(alive::next, () -> done.add("gone"));

    assertEquals(List.of("gone"), done);
    assertEquals(false, alive.hasNext());
  }
}
