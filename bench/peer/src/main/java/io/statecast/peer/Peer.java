package io.statecast.peer;

import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.IOException;
import java.io.Reader;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Runs one instance of the peer: {@code java io.statecast.peer.Peer FILE…}, where each file of properties overrides
 * those before it. Names that begin with {@code peer.} are this program's, all others are Kafka's.
 */
public final class Peer {
  private static final Duration CLOSE = Duration.ofSeconds(30);

  private Peer() {}

  public static void main(String[] files) throws IOException, InterruptedException {
    Properties properties = propertiesOf(files);
    HostInfo self = HostInfo.buildFromEndpoint(properties.getProperty("application.server"));
    KafkaStreams streams = new KafkaStreams(Topologies.of(properties), properties);
    streams.setGlobalStateRestoreListener(new RestoreLog());
    Server server = serve(self, new Lookups(new Owners(streams, self), properties.getProperty("peer.instance")));
    streams.start();
    CountDownLatch ended = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      server.shutdownNow();
      streams.close(CloseOptions.timeout(CLOSE).withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
      ended.countDown();
    }));
    ended.await();
  }

  private static Properties propertiesOf(String[] files) throws IOException {
    Properties properties = new Properties();
    for (String file : files) {
      try (Reader reader = Files.newBufferedReader(Path.of(file))) {
        properties.load(reader);
      }
    }
    return properties;
  }

  private static Server serve(HostInfo self, Lookups lookups) throws IOException {
    return NettyServerBuilder.forAddress(new InetSocketAddress(self.host(), self.port()))
        .addService(lookups)
        .intercept(new PassedOn())
        .build()
        .start();
  }
}
