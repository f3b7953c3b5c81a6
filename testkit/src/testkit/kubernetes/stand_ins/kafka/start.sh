# Starts the broker as Kafka's own image does: the variable KAFKA_A_B is the setting a.b, and new storage is formatted.
set -eu
properties=/tmp/server.properties
env | sed -n 's/^KAFKA_//p' | while IFS='=' read -r name value; do
    printf '%s=%s\n' "$(printf %s "$name" | tr 'A-Z_' 'a-z.')" "$value"
done > "$properties"
java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format --ignore-formatted -t "$CLUSTER_ID" -c "$properties"
exec java -Xmx512m -cp '/opt/kafka/libs/*' kafka.Kafka "$properties"
