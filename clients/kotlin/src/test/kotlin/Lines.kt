/**
 * Runs the lines of docs/start/client.md for `tests/e2e/test_clients.py`. The argument is the gateway's
 * `ws://host:port`.
 */
package io.statecast.push

import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

suspend fun main(arguments: Array<String>) {
    val gateway = arguments.single()
    val client = PushClient("$gateway/v1/stream") { mapOf("apikey" to "alice-demo-key") }
    client.watch("orders-by-customer", "customer-0001", reverse = true, limit = 20).changes.collect { change ->
        for ((key, row) in change.rows) println("$key ${row.value.jsonObject["status"]?.jsonPrimitive?.content}")
    }
}
