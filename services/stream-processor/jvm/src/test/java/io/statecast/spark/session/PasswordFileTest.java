package io.statecast.spark.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PasswordFileTest {
  @Test
  void aClientSignsInWithWhatTheFileHasWhenItConnects(@TempDir Path directory) throws IOException {
    Path file = directory.resolve("password");
    Map<String, String> options = Map.of("user", "processor", "password_file", file.toString());
    PasswordFile signIn = new PasswordFile();
    AppConfigurationEntry login = new AppConfigurationEntry("a module", LoginModuleControlFlag.REQUIRED, options);
    signIn.configure(Map.of(), "SCRAM-SHA-512", List.of(login));

    Files.writeString(file, "first\n");
    assertEquals("processor:first", asked(signIn));
    Files.writeString(file, "second \"one\"");
    assertEquals("processor:second \"one\"", asked(signIn));
    Files.delete(file);
    assertThrows(IOException.class, () -> asked(signIn));
  }

  private static String asked(PasswordFile signIn) throws IOException {
    NameCallback name = new NameCallback("who");
    PasswordCallback password = new PasswordCallback("what", false);
    signIn.handle(new Callback[] {name, password});
    return name.getName() + ":" + new String(password.getPassword());
  }
}
