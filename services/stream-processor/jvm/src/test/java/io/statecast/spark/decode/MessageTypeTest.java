package io.statecast.spark.decode;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.statecast.spark.tables.TestTable;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.junit.jupiter.api.Test;

class MessageTypeTest {
  private final MessageType all = TestMessages.DESCRIPTORS.type(TestMessages.ALL);

  @Test
  void aTypeThatATaskBringsIsTheKnownOne() throws IOException, ClassNotFoundException {
    assertSame(all, new ObjectInputStream(new ByteArrayInputStream(written(all))).readObject());
  }

  @Test
  void aTypeOfASetThatIsReadAgainIsTheKnownOne() {
    assertSame(TestTable.shop(), TestTable.shop());
  }

  @Test
  void aTypeBringsItsFileAndTheImportedOnesAlone() throws IOException {
    assertTrue(new String(written(all), ISO_8859_1).contains("google/protobuf/timestamp.proto"));
    String shop = new String(written(TestTable.shop()), ISO_8859_1);

    assertTrue(shop.contains("shop.proto"));
    assertFalse(shop.contains("state.proto"));
  }

  private static byte[] written(MessageType type) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
      objects.writeObject(type);
    }
    return bytes.toByteArray();
  }
}
