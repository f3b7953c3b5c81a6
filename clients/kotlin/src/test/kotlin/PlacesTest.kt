package io.statecast.push

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test

private const val BEGINS = """{"id":1,"watching":{},"rows":[{"key":"a","row":{"n":1}},{"key":"b","row":{"n":2}}],"token":"1"}"""
private const val A_BEGINS = """{"id":1,"path":["a"],"watching":{},"rows":[{"key":"x","row":{}}],"token":"1"}"""
private const val B_BEGINS = """{"id":1,"path":["b","c"],"watching":{},"rows":[],"token":"1"}"""

/** Checks that frames change rows, tokens and places by the rules of docs/websocket-protocol.md. */
class PlacesTest {
    private val places = Places()
    private val top = emptyList<String>()

    private fun take(vararg frames: String) = frames.flatMap { places.take(parse(it)) }

    private fun values() = places.own.rows.mapValues { it.value.value.jsonObject["n"]?.text }

    @Test
    fun `rows count at their token, and are forgotten when the socket ends before it`() {
        take(BEGINS, """{"rows":[{"key":"a","left":true},{"key":"c","row":{"n":3}}]}""")
        assertEquals(mapOf("a" to "1", "b" to "2"), values())

        places.cut()
        take("""{"watching":{"resumed":true},"rows":[{"key":"b","delta":{"n":4}}],"token":"2"}""")
        assertEquals(mapOf("a" to "1", "b" to "4"), values())
    }

    @Test
    fun `a beginning anew replaces all rows at its token and tells of those that are gone`() {
        take(BEGINS)
        val change = take("""{"watching":{},"rows":[{"key":"b","row":{"n":2}}]}""", """{"token":"2"}""").single()

        assertEquals(setOf("a") to setOf("b"), change.left.keys to change.rows.keys)
        assertEquals(mapOf("b" to "2"), values())
    }

    @Test
    fun `a row that leaves and was not there is nobody's news`() {
        take(BEGINS)

        assertEquals(emptySet<String>(), take("""{"rows":[{"key":"z","left":true}],"token":"2"}""").single().left.keys)
    }

    @Test
    fun `a row that leaves ends the places below at once`() {
        take(BEGINS, A_BEGINS, B_BEGINS)
        val ended = take("""{"rows":[{"key":"b","left":true}]}""").single()
        assertEquals(listOf("b", "c") to true, ended.path to ended.ended)
        assertEquals(setOf(top, listOf("a")), places.all().keys)

        take("""{"rows":[{"key":"b","row":{}}]}""", B_BEGINS, """{"token":"2"}""")
        assertEquals(setOf(top, listOf("a"), listOf("b", "c")), places.all().keys)
    }

    @Test
    fun `the token of a beginning anew ends the places below rows that are gone, and the others stay`() {
        take(BEGINS, A_BEGINS, B_BEGINS, """{"watching":{},"rows":[{"key":"a","row":{}}]}""")
        assertEquals(3, places.all().size)

        val (change, ended) = take("""{"token":"2"}""")
        assertEquals(top to listOf("b", "c"), change.path to ended.path)
        assertEquals(setOf(top, listOf("a")), places.all().keys)
    }

    @Test
    fun `a bookmark is a newer token of a place in which nothing waits or is to be replaced`() {
        take(BEGINS)
        places.bookmark(parse("""{"id":1,"token":"2"}"""))
        assertEquals("2", places.own.token)

        for (frame in listOf("""{"rows":[{"key":"a","row":{}}]}""", """{"watching":{}}""")) {
            take(frame)
            places.bookmark(parse("""{"id":1,"token":"3"}"""))
            assertEquals("2", places.own.token, frame)
        }
    }

    @Test
    fun `a delta without its row is an error that names the row`() {
        val error = assertThrows(PushException::class.java) { take("""{"rows":[{"key":"q","delta":{}}],"token":"1"}""") }

        assertEquals("the edge tells fields of the row `q`, which this client does not hold", error.message)
    }

    @Test
    fun `a delta keeps a null that a document had`() {
        take("""{"watching":{},"rows":[{"key":"a","row":{"n":null,"m":1}}],"token":"1"}""")
        take("""{"rows":[{"key":"a","delta":{"m":2,"l":null}}],"token":"2"}""")

        assertEquals(parse("""{"n":null,"m":2}"""), places.own.rows.getValue("a").value)
    }

    @Test
    fun `a row keeps its sort value until another one comes`() {
        take("""{"watching":{},"rows":[{"key":"a","sort":"s","row":{}}],"token":"1"}""")
        take("""{"rows":[{"key":"a","row":{}}],"token":"2"}""")
        assertEquals("s", places.own.rows.getValue("a").sort)

        take("""{"rows":[{"key":"a","sort":"t","row":{}}],"token":"3"}""")
        assertEquals("t", places.own.rows.getValue("a").sort)
    }

    @Test
    fun `a map of rows stays as it is`() {
        take(BEGINS)
        val before = places.own.rows
        take("""{"rows":[{"key":"a","left":true}],"token":"2"}""")

        assertEquals(setOf("a", "b") to setOf("b"), before.keys to places.own.rows.keys)
    }

    @Test
    fun `what is saved is restored, and resumes`() {
        take(BEGINS, A_BEGINS, """{"path":["b"],"watching":{},"rows":[]}""")
        take("""{"rows":[{"key":"a","row":{"n":1},"commit_time":"2026-11-28T10:00:00Z"}],"token":"2"}""")
        val saved = places.save(withRows = true)
        val restored = Places(JsonObject(saved.first() + ("below" to JsonArray(saved.drop(1)))))

        assertEquals(mapOf(top to places.own, listOf("a") to places.all()[listOf("a")]), restored.all())
        restored.take(parse("""{"watching":{"resumed":true},"rows":[{"key":"a","left":true}],"token":"2"}"""))
        assertEquals(setOf(top), restored.all().keys)
    }

    @Test
    fun `two changes of a place that nobody has read are one`() {
        val first = take(BEGINS).single()
        val second = take("""{"rows":[{"key":"a","left":true},{"key":"b","row":{},"skipped":2}],"token":"2","current":true}""")
        val change = first.followedBy(second[0]).followedBy(second[1])

        assertEquals(listOf("b" to 3), change.rows.map { (key, row) -> key to row.skipped })
        assertEquals(setOf("a") to "2", change.left.keys to change.token)
        assertEquals(true, change.current)
    }
}
