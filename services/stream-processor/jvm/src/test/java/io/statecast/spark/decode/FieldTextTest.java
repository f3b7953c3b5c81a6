package io.statecast.spark.decode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.BoolValue;
import com.google.protobuf.Descriptors.FieldDescriptor;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FieldTextTest {
  private static final FieldDescriptor TRUTH = BoolValue.getDescriptor().findFieldByName("value");

  @ParameterizedTest
  @CsvSource({"true, true", "FALSE, false", "1, true", "0, false"})
  void aTruthIsAWordOrTheNumberOfATinyint(String text, boolean truth) {
    assertEquals(truth, FieldText.read(TRUTH, text, DeclaredType.NONE, "paid"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"2", "-1", "1.0", "01", "yes", "", "AQ=="})
  void whatIsNoTruthIsAProblem(String text) {
    UndecodableException problem =
        assertThrows(UndecodableException.class, () -> FieldText.read(TRUTH, text, DeclaredType.NONE, "paid"));

    assertEquals("paid is not true or false, or 1 or 0: " + text, problem.getMessage());
  }
}
