# Starts an executor as Spark's own image does, by the variables that the driver gives its pod.
set -euo pipefail
if [[ ${1:-} != executor ]]; then
    echo "start.sh ${1:-}: only executors are started here" >&2
    exit 1
fi
jars=$(echo /opt/venv/lib/python3*/site-packages/pyspark/jars)
mapfile -t options < <(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | cut -d= -f2-)
exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_EXTRA_CLASSPATH:-}:$jars/*:$PWD" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
