package io.statecast.spark.session;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;

/**
 * Signs Kafka's clients in as the login module's option `user`, with the password in `password_file` at the time when
 * they connect. So the password can change while they run, and no configuration contains it.
 */
public final class PasswordFile implements AuthenticateCallbackHandler {
  private Map<String, ?> options = Map.of();

  @Override
  public void configure(Map<String, ?> configuration, String mechanism, List<AppConfigurationEntry> logins) {
    options = logins.get(0).getOptions();
  }

  @Override
  public void handle(Callback[] callbacks) throws IOException {
    for (Callback callback : callbacks) {
      if (callback instanceof NameCallback name) {
        name.setName((String) options.get("user"));
      } else if (callback instanceof PasswordCallback password) {
        String line = Files.readString(Path.of((String) options.get("password_file")));
        password.setPassword(line.replaceAll("[\r\n]+$", "").toCharArray());
      }
    }
  }

  @Override
  public void close() {}
}
