package io.statecast.spark.session;

import java.io.Serializable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnaryExecNode;
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Removes the shuffles of a real-time query that one task reads, if its state has one part: ADR 0068.
 *
 * <p>Spark removes a shuffle from one partition to one by itself, but a real-time scan never says how many it has, so a
 * shuffle would come before each state and occupy a task of its own. `spark.sql.extensions` names this class. It uses
 * Spark's private parts, which may change with any release; this is for 4.3.
 */
public final class OneTask extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(
        new AbstractFunction1<SparkSession, ColumnarRule>() {
          @Override
          public ColumnarRule apply(SparkSession session) {
            return new BeforeColumns();
          }
        });
    return BoxedUnit.UNIT;
  }

  /** Runs before the rules for columns, the only ones that get a streaming plan with its shuffles. */
  private static final class BeforeColumns extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new WithoutShuffles();
    }
  }

  private static final class WithoutShuffles extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return (SparkPlan) plan.transformUp(new Input());
    }
  }

  /** Replaces a shuffle from one task to one by its input. */
  private static final class Input extends AbstractPartialFunction<SparkPlan, SparkPlan> implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean isDefinedAt(SparkPlan plan) {
      // The shuffle's own numPartitions() would run the input.
      return plan instanceof ShuffleExchangeExec shuffle
          && shuffle.outputPartitioning().numPartitions() == 1
          && isReadByOneTask(shuffle.child());
    }

    @Override
    public SparkPlan apply(SparkPlan plan) {
      return ((ShuffleExchangeExec) plan).child();
    }

    private static boolean isReadByOneTask(SparkPlan plan) {
      if (plan instanceof RealTimeStreamScanExec scan) {
        return scan.inputPartitions().size() == 1;
      }
      if (plan instanceof TransformWithStateExec state) {
        return isReadByOneTask(state.left());
      }
      return plan instanceof UnaryExecNode operator && isReadByOneTask((SparkPlan) operator.child());
    }
  }
}
