package io.statecast.spark.session;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * Ends this JVM as soon as the process that drives it is gone.
 *
 * <p>Spark ends by itself when the driver's pipe closes, but in an orderly way that takes seconds. Meanwhile it would
 * go on writing beside the process that a supervisor has started in its place.
 */
public final class ParentWatch {
  private static final Duration PERIOD = Duration.ofMillis(200);

  private ParentWatch() {}

  /** Watches the process with this id from a daemon thread, and halts the JVM without a message when it is gone. */
  public static void start(long parent) {
    BooleanSupplier alive = () -> ProcessHandle.of(parent).map(ProcessHandle::isAlive).orElse(false);
    Thread watch = new Thread(() -> await(alive, () -> Runtime.getRuntime().halt(1)), "parent-watch");
    watch.setDaemon(true);
    watch.start();
  }

  static void await(BooleanSupplier alive, Runnable gone) {
    try {
      while (alive.getAsBoolean()) {
        Thread.sleep(PERIOD.toMillis());
      }
      gone.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
