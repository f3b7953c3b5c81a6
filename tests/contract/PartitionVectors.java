import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints where Kafka's own partitioner puts groups, and their FNV-1a, as the JSON of partition_vectors.json.
 *
 * <p>{@code java -cp 'infra/local/kafka/target/libs/*' tests/contract/PartitionVectors.java}
 */
public final class PartitionVectors {
    private static final List<Integer> PARTITIONS = List.of(1, 2, 3, 4, 7, 12, 64);

    public static void main(String[] arguments) {
        System.out.println(
                groups().map(PartitionVectors::vector).collect(Collectors.joining(",\n", "[\n", "\n]")));
    }

    /** Returns ids as they are shipped, every remainder of the length by the hash's word, and texts beyond ASCII. */
    private static Stream<String> groups() {
        Stream<String> ids = IntStream.rangeClosed(1, 40).boxed().flatMap(n -> Stream.of(
                String.format("order-%06d", n), String.format("customer-%04d", n), String.format("item-%04d", n)));
        Stream<String> lengths = IntStream.rangeClosed(0, 20).mapToObj(n -> "abcdefghijklmnopqrstuvwxyz".substring(0, n));
        Stream<String> beyond = Stream.of("ü", "Zürich", "日本語", "🚆 Berlin", "\u007f", "a b/c?d=e", "x".repeat(1000));
        return Stream.of(ids, lengths, beyond).flatMap(each -> each);
    }

    private static String vector(String group) {
        byte[] key = group.getBytes(StandardCharsets.UTF_8);
        String partitions = PARTITIONS.stream()
                .map(n -> "\"" + n + "\": " + BuiltInPartitioner.partitionForKey(key, n))
                .collect(Collectors.joining(", "));
        long hash = Integer.toUnsignedLong(Utils.murmur2(key));
        return "  {\"group\": \"" + escaped(group) + "\", \"murmur2\": " + hash + ", \"fnv1a\": " + fnv1a(key)
                + ", \"partitions\": {" + partitions + "}}";
    }

    /** Returns FNV-1a with 32 bits, as a signed number: Sarama and kafka-go take its magnitude. */
    private static int fnv1a(byte[] key) {
        int hash = 0x811c9dc5;
        for (byte each : key) {
            hash = (hash ^ (each & 0xff)) * 0x01000193;
        }
        return hash;
    }

    private static String escaped(String text) {
        return text.chars()
                .mapToObj(c -> c >= 0x20 && c < 0x7f ? String.valueOf((char) c) : String.format("\\u%04x", c))
                .collect(Collectors.joining());
    }
}
