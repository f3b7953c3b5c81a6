package io.statecast.push

import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.serialization.json.jsonArray
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource

private const val ROWS = """"watching":{},"rows":[{"key":"k","row":{"n":1}}],"token":"t1","current":true"""

/** Checks a client with a scripted edge and clock: connections that end, and their watches. */
class ClientTest {
    @Test
    fun `watches are asked for in one frame, again with their tokens on the next line`() = withServer { server ->
        val watch = server.client.watch("s", "g1", limit = 5)
        server.client.watch("s", "g2", intervalMs = 0)
        server.opens()
        val expected = """{"watch":[{"id":1,"group":"g1","store":"s","limit":5,"delta":true},
            {"id":2,"group":"g2","store":"s","delta":true,"interval_ms":0}]}"""
        assertEquals(listOf(parse(expected)), server.socket.sent)

        server.tells("""{"id":1,$ROWS}""")
        assertEquals(listOf(true, false), listOf(watch.current, watch.resumed))
        server.socket.breaks()
        server.passes(1.seconds)
        server.opens()
        assertEquals(listOf("t1", null), server.socket.watches.map { it["token"]?.text })
        assertEquals(false, watch.current)
    }

    @Test
    fun `a line without a frame for 45 seconds is dead, and pings keep it`() = withServer { server ->
        server.opens()
        repeat(5) {
            server.passes(40.seconds)
            server.tells(PING)
        }
        assertEquals(State.OPEN, server.client.state.value)

        server.passes(44.seconds)
        assertEquals(false, server.socket.isCancelled)
        server.passes(1.seconds)
        assertEquals(true, server.socket.isCancelled)
        assertEquals(State.WAITING, server.client.state.value)
    }

    @Test
    fun `a handshake that is not answered for 10 seconds has failed`() = withServer { server ->
        server.passes(10.seconds)
        assertEquals(true, server.sockets[0].isCancelled)

        server.passes(1.seconds)
        assertEquals(2, server.sockets.size)
    }

    @Test
    fun `an app that is in front again finds out in 5 seconds whether the line lives`() = withServer { server ->
        server.opens()
        server.client.check()
        server.settles()
        assertEquals(listOf(parse(PING)), server.socket.sent)
        server.tells(PING)
        server.passes(30.seconds)
        assertEquals(State.OPEN, server.client.state.value)

        server.client.check()
        server.passes(4.seconds)
        server.client.check()
        server.passes(1.seconds)
        assertEquals(State.WAITING, server.client.state.value)
    }

    @Test
    fun `an app that is in front again need not wait for the next attempt`() = withServer { server ->
        server.settles()
        server.socket.refuses(503, "Retry-After" to "600")
        server.settles()
        server.client.check()
        server.settles()

        assertEquals(2, server.sockets.size)
    }

    @Test
    fun `attempts come more slowly until a frame other than hello has come`() = withServer { server ->
        suspend fun waited(): Duration {
            val before = server.sockets.size
            var waited = Duration.ZERO
            while (server.sockets.size == before) {
                server.passes(1.milliseconds)
                waited += 1.milliseconds
            }
            return waited
        }
        val ceilings = listOf(250, 500, 1000, 2000).map { it.milliseconds }
        for (ceiling in ceilings) {
            server.opens()
            server.socket.breaks()
            val waited = waited()
            assertTrue(waited in ceiling / 2..ceiling + 1.milliseconds, "$waited of $ceiling")
        }
        server.opens()
        server.tells(PING)
        server.socket.breaks()
        assertTrue(waited() <= 251.milliseconds)
    }

    @Test
    fun `the edge says when to come again`() = withServer { server ->
        server.opens()
        server.tells("""{"reconnect":{"delay_ms":3400}}""")
        server.socket.ends(1012)
        server.passes(3.4.seconds)
        assertEquals(1, server.sockets.size)
        server.passes(250.milliseconds)
        assertEquals(2, server.sockets.size)

        server.socket.refuses(429, "Retry-After" to "20")
        server.passes(20.seconds)
        assertEquals(2, server.sockets.size)
        server.passes(10.seconds)
        assertEquals(3, server.sockets.size)
    }

    @ParameterizedTest
    @ValueSource(ints = [4403, 1009])
    fun `a close code that speaks against another attempt ends the client`(code: Int) = withServer { server ->
        server.opens()
        server.socket.ends(code)
        server.passes(60.seconds)

        assertEquals(1 to "$code", server.sockets.size to (server.client.reason as PushRefusedException).code)
    }

    @Test
    fun `a watch that the edge ends for a while is asked for again by the next number`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,$ROWS}""")
        server.tells("""{"id":1,"ended":{"code":"store_changed","message":"m","retry_ms":2140}}""")
        server.tells("""{"id":1,"rows":[{"key":"late","row":{}}],"token":"t9"}""")
        assertEquals("t1", watch.token)

        server.passes(2139.milliseconds)
        assertEquals(1, server.socket.watches.size)
        server.passes(1.milliseconds)
        assertEquals(listOf("2", "t1"), server.socket.watches[1].run { listOf(getValue("id").text, getValue("token").text) })
    }

    @Test
    fun `a watch that the edge ends for a while is asked for after it on a new socket`() = withServer { server ->
        server.client.watch("s", "g")
        server.client.watch("s", "other")
        server.opens()
        server.tells("""{"id":1,"ended":{"code":"store_changed","message":"m","retry_ms":2140}}""")
        server.socket.breaks()
        server.passes(300.milliseconds)
        server.opens()
        assertEquals(listOf("other"), server.socket.watches.map { it.getValue("group").text })

        server.passes(1840.milliseconds)
        assertEquals(listOf("other", "g"), server.socket.watches.map { it.getValue("group").text })
    }

    @Test
    fun `a watch that is ended meanwhile is not asked for again`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,"ended":{"code":"store_changed","message":"m","retry_ms":2140}}""")
        watch.unwatch()
        server.passes(3.seconds)

        assertEquals(1, server.socket.sent.size)
    }

    @Test
    fun `the flow of a watch brings its changes, and throws why the edge has ended it`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        val changes = CopyOnWriteArrayList<Change>()
        var ended: Throwable? = null
        val collecting = launch { ended = runCatching { watch.changes.collect(changes::add) }.exceptionOrNull() }
        server.opens()
        server.tells("""{"id":1,"watching":{},"rows":[{"key":"k","row":{"n":1}}],"token":"t1"}""")
        server.tells("""{"id":1,"rows":[{"key":"k","delta":{"n":2}}],"token":"t2"}""")
        server.tells("""{"id":1,"ended":{"code":"forbidden","message":"it is somebody else's"}}""")
        collecting.join()

        assertEquals(listOf("t1", "t2"), changes.map { it.token })
        assertEquals("forbidden", (ended as PushRefusedException).code)
        assertEquals(parse("""{"n":2}"""), watch.rows.getValue("k").value)
    }

    @Test
    fun `a slow collector gets the changes in between as one`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,$ROWS}""")
        for (n in 2..9) server.tells("""{"id":1,"rows":[{"key":"k","delta":{"n":$n}}],"token":"t$n"}""")
        server.client.close()

        val change = watch.changes.toList().single()
        assertEquals(listOf("t9", 8), listOf(change.token, change.rows.getValue("k").skipped))
    }

    @Test
    fun `a watch that is ended completes its flow, and the edge is told`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,$ROWS}""")
        watch.unwatch()
        server.settles()

        assertEquals(emptyList<Change>(), watch.changes.toList())
        assertEquals(parse("""{"unwatch":[1]}"""), server.socket.sent.last())
    }

    @Test
    fun `it is said how long rows may be out of date`() = withServer { server ->
        val (one, other) = List(2) { server.client.watch("s", "g$it") }
        server.opens()
        server.tells("""{"ping":{"blind":[{"ids":[1],"lag_s":12}]}}""")
        assertEquals(12.seconds to null, one.stale to other.stale)
        server.tells("""{"ping":{"blind":[{"ids":[1],"lag_s":12},{"lag_s":30}]}}""")
        assertEquals(30.seconds to 30.seconds, one.stale to other.stale)
        server.tells(PING)
        assertNull(one.stale)

        server.socket.breaks()
        server.settles()
        server.socket.refuses(503, "Retry-After" to "60")
        server.passes(60.seconds)
        assertEquals(60.seconds, one.stale)
    }

    @Test
    fun `bookmarks are kept, and resume`() = withServer { server ->
        server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,$ROWS}""")
        server.tells("""{"ping":{"bookmarks":[{"id":1,"token":"t7"},{"id":99,"token":"x"}]}}""")
        server.socket.breaks()
        server.passes(1.seconds)
        server.opens()

        assertEquals(listOf("t7"), server.socket.watches.map { it["token"]?.text })
    }

    @Test
    fun `what is saved resumes in another client, with its rows from the start`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.tells("""{"id":1,$ROWS}""")
        val restored = server.client.watch("s", "g", resume = watch.save())
        val page = server.client.watch("s", "g", resume = """{"rows":[],"token":"p"}""")
        server.settles()

        assertEquals(watch.rows to "t1", restored.rows to restored.token)
        assertEquals(listOf("t1", "p"), server.socket.watches.drop(1).map { it["token"]?.text })
        assertEquals(listOf("true", "true"), server.socket.watches.drop(1).map { it["delta"]?.text })
        assertEquals(emptyMap<String, Row>(), page.rows)
    }

    @Test
    fun `what was saved before the first rows begins with all rows`() = withServer { server ->
        server.client.watch("s", "g", resume = server.client.watch("s", "g").save())
        server.opens()

        assertEquals(listOf(null to "true", null to "true"), server.socket.watches.map { it["token"] to it["delta"]?.text })
    }

    @ParameterizedTest
    @ValueSource(strings = ["", "[]", """{"rows":[]}""", """{"rows":[7],"token":"1"}""", """{"token":"1","below":[{}]}"""])
    fun `what is neither saved nor a page is refused`(wrong: String) = withServer { server ->
        val error = assertThrows(PushException::class.java) { server.client.watch("s", "g", resume = wrong) }

        assertTrue("`resume` is neither" in error.message!!)
        server.opens()
        assertEquals(emptyList<Any>(), server.socket.sent)
    }

    @Test
    fun `no frame is larger than the edge takes`() = withServer { server ->
        val below = (0..200).joinToString(",") { """{"path":["ä$it"],"token":"t","rows":[]}""" }
        server.client.watch("s", "g", steps = listOf(Step("t", "f")), resume = """{"token":"t","rows":[],"below":[$below]}""")
        repeat(20) { server.client.watch("s", "group-$it") }
        server.opens("""{"hello":{"max_request_bytes":1000}}""")
        val sizes = server.socket.sent.map { it.toString().encodeToByteArray().size }

        assertTrue(sizes.all { it <= 1000 }, "$sizes")
        assertEquals((1..21).toList(), server.socket.watches.map { it.number("id").toInt() })
        assertTrue(server.socket.watches[0].parts("below").size in 20..30)
    }

    @Test
    fun `no frame is larger than the edge takes, however many watches end`() = withServer { server ->
        val watches = List(100) { server.client.watch("s", "g") }
        server.opens("""{"hello":{"max_request_bytes":256}}""")
        watches.forEach(Watch::unwatch)
        server.settles()
        val frames = server.socket.sent.filter { "unwatch" in it }

        assertTrue(frames.all { it.toString().length <= 256 }, "$frames")
        assertEquals((1..100).toList(), frames.flatMap { it.getValue("unwatch").jsonArray }.map { it.text.toInt() })
    }

    @ParameterizedTest
    @ValueSource(strings = ["no json", "[1]", """{"id":"one"}""", """{"id":1,"rows":{}}""", """{"ping":7}"""])
    fun `a frame that is not of the protocol ends the client with its reason`(frame: String) = withServer { server ->
        server.client.watch("s", "g")
        server.opens()
        server.tells(frame)

        assertTrue("sends a frame that is not of statecast.push.v2+json" in server.client.reason!!.message!!)
        assertEquals(1000, server.socket.closedWith)
    }

    @Test
    fun `a delta without its row begins its watch anew`() = withServer { server ->
        val (wrong, good) = List(2) { server.client.watch("s", "g$it") }
        server.opens()
        server.tells("""{"id":1,"watching":{},"token":"t"}""")
        server.tells("""{"id":1,"rows":[{"key":"k","delta":{}}],"token":"u"}""")
        server.tells("""{"id":2,$ROWS}""")
        assertEquals(parse("""{"unwatch":[1]}"""), server.socket.sent[1])
        assertEquals(listOf("3" to null), server.socket.watches.drop(2).map { it.getValue("id").text to it["token"] })

        server.tells("""{"id":3,$ROWS}""")
        assertEquals(listOf(setOf("k"), setOf("k")), listOf(wrong, good).map { it.rows.keys })
    }

    @Test
    fun `another server is named`() = withServer { server ->
        server.settles()
        server.socket.opens(subprotocol = "graphql-ws")
        server.settles()

        assertTrue("give the socket /v1/stream" in server.client.reason!!.message!!)
        assertEquals(State.CLOSED, server.client.state.value)
    }

    @Test
    fun `a wrong address is refused at once`() {
        for (wrong in listOf("gateway/v1/stream", "https://gateway/v1/stream", "ws://", "")) {
            val error = assertThrows(PushException::class.java) { PushClient(wrong) }
            assertTrue("`$wrong`" in error.message!!)
        }
    }

    @Test
    fun `a client that is closed says so`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.opens()
        server.client.close()
        server.settles()

        assertEquals(emptyList<Change>(), watch.changes.toList())
        assertEquals(1000 to State.CLOSED, server.socket.closedWith to server.client.state.value)
        assertThrows(PushException::class.java) { server.client.watch("s", "g") }
    }
}
