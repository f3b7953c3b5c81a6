package io.statecast.push

import java.io.File
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource

/** Checks the shared frames of all clients: the client reads those of an edge, and writes those of a client. */
class FramesTest {
    private val edge = frames("edge")
    private val client = frames("client")
    private val top = emptyList<String>()
    private val market = "market-000123-1"
    private val places = Places().apply { take(edge.getValue("a watch begins with all rows")) }

    private fun frames(side: String): Map<String, JsonObject> {
        val all = parse(File("../frames.json").readText()).getValue(side) as JsonArray
        return all.map { it.jsonObject }.associate { it.getValue("shows").text to it.getValue("json").jsonObject }
    }

    private fun take(shows: String) = places.take(edge.getValue(shows))

    @Test
    fun `a watch begins and its row has the key and sort value of its fields`() {
        val row = places.own.rows.values.single()

        assertEquals(listOf(market, "match winner", "false"), listOf(row.key, row.sort, row.value.jsonObject["suspended"]?.text))
        assertEquals(edge.getValue("a watch begins with all rows").getValue("token").text, places.own.token)
        assertEquals(listOf(true, false), listOf(places.current, places.resumed))
    }

    @ParameterizedTest
    @ValueSource(strings = ["a row changes", "a row changes, as a delta", "a watch resumes"])
    fun `a row is whole after each way of a change`(shows: String) {
        val before = places.own.rows.getValue(market)
        take(shows)

        assertEquals(before, places.own.rows[market])
    }

    @Test
    fun `a field that is gone is removed`() {
        val before = places.own.rows.getValue(market).value.jsonObject
        take("a field is gone")

        assertEquals(JsonObject(before - "updated_at"), places.own.rows.getValue(market).value)
    }

    @Test
    fun `a row has its time and the number of versions that were left out`() {
        take("a row with its time, after versions that were left out")
        val row = places.own.rows.getValue(market)

        assertEquals(2 to "2026-11-27T07:40:05.123456Z", row.skipped to row.commitTime)
    }

    @Test
    fun `some fields of a row are the row`() {
        take("some fields of a row")

        assertEquals(setOf("outcomes", "suspended"), places.own.rows.getValue(market).value.jsonObject.keys)
    }

    @ParameterizedTest
    @ValueSource(strings = ["a row leaves", "a row cannot be shown"])
    fun `a row is dropped`(shows: String) {
        val change = take(shows).single()

        assertEquals(emptyMap<String, Row>(), places.own.rows)
        assertEquals(if (shows == "a row leaves") null else "row_too_large", change.left.getValue(market)?.code)
    }

    @Test
    fun `rows without a token change nothing yet`() = assertEquals(emptyList<Change>(), take("rows that count later"))

    @Test
    fun `a place below begins and ends`() {
        take("a place below")
        assertEquals(setOf(top, listOf("match-000123")), places.all().keys)

        take("a place below ends")
        assertEquals(setOf(top), places.all().keys)
    }

    @ParameterizedTest
    @ValueSource(strings = ["watch a range", "watch a query", "watch a channel"])
    fun `a watch is asked for as all clients do`(shows: String) {
        val wanted = client.getValue(shows).getValue("watch").jsonArray.single().jsonObject
        val resume = JsonObject(wanted.filterKeys { it in setOf("token", "below") })
        val query = JsonObject(wanted - setOf("id", "token", "below"))
        val watch = Watch(query, resume.takeIf { it.isNotEmpty() }, Any(), {}, { null })

        assertEquals(wanted, watch.request(wanted.number("id"), MAX_REQUEST_BYTES))
    }

    @Test
    fun `watches are ended as all clients do`() {
        val requests = Requests()
        val watches = List(2) { Watch(JsonObject(mapOf("store" to JsonNull)), null, Any(), {}, { null }) }
        watches.forEach(requests::watch)
        requests.frames(MAX_REQUEST_BYTES)
        watches.forEach(requests::unwatch)

        assertEquals(client["end watches"], parse(requests.frames(MAX_REQUEST_BYTES).single()))
    }
}
