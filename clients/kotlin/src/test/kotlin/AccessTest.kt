package io.statecast.push

import java.net.InetAddress
import java.net.ServerSocket
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.concurrent.thread
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** Checks the credentials of a client with a scripted edge and clock: refused, renewed in time, and unavailable. */
class AccessTest {
    @Test
    fun `credentials that are refused are asked for once more`() = withServer { server ->
        val watch = server.client.watch("s", "g")
        server.settles()
        server.socket.refuses(401)
        server.passes(1.seconds)
        server.socket.refuses(401)
        server.passes(1.seconds)

        assertEquals(listOf(Need.CONNECT, Need.EXPIRED), server.needs)
        assertEquals(State.CLOSED, server.client.state.value)
        val error = runCatching { watch.changes.toList() }.exceptionOrNull() as PushRefusedException
        assertEquals("401" to "the credential is not accepted (401: the edge says no)", error.code to error.message)
        assertThrows(PushRefusedException::class.java) { server.client.watch("s", "g") }
    }

    @Test
    fun `access that has ended goes on with newer credentials`() = withServer { server ->
        server.opens()
        server.socket.ends(4401)
        server.passes(1.seconds)
        server.opens()
        server.tells(PING)
        server.socket.ends(4401)
        server.passes(1.seconds)

        assertEquals(listOf(Need.CONNECT, Need.EXPIRED, Need.EXPIRED), server.needs)
        assertEquals(3, server.sockets.size)
    }

    @Test
    fun `without credentials nothing is renewed`() = withServer(null) { server ->
        server.opens()
        repeat(99) {
            server.passes(20.seconds)
            server.tells(PING)
        }
        assertEquals(emptyList<Any>(), server.calls)

        server.socket.ends(4401)
        server.settles()
        assertEquals(State.CLOSED, server.client.state.value)
    }

    private fun Server.waits(seconds: Int) = repeat(seconds / 20) {
        passes(20.seconds)
        tells(PING)
    }

    @Test
    fun `access is renewed on the open line by a ticket, and again by its new end`() = withServer { server ->
        server.opens()
        server.waits(780)
        assertEquals(emptyList<Any>(), server.calls)
        server.waits(20)
        assertEquals("POST http://edge.test/v1/tickets k", server.calls.single().run { "$method $url ${header("apikey")}" })
        assertEquals(parse("""{"renew":{"ticket":"ticket-1"}}"""), server.socket.sent.last())

        server.tells("""{"access":{"expires_in_s":100}}""")
        server.waits(80)
        assertEquals(parse("""{"renew":{"ticket":"ticket-2"}}"""), server.socket.sent.last())
        assertEquals(listOf(Need.CONNECT, Need.EXPIRING, Need.EXPIRING), server.needs)
    }

    @Test
    fun `a renewal that fails is tried again, and one that is refused by another ticket`() = withServer { server ->
        server.opens("""{"hello":{"expires_in_s":100}}""")
        server.statuses += listOf(503)
        server.waits(80)
        assertEquals(emptyList<Any>(), server.socket.sent)
        assertTrue("answers 503" in server.client.reason!!.message!!)
        server.waits(20)
        assertEquals(parse("""{"renew":{"ticket":"ticket-2"}}"""), server.socket.sent.single())

        server.tells("""{"access":{"expires_in_s":100}}""")
        assertNull(server.client.reason)
        server.waits(80)
        server.tells("""{"error":{"code":"ticket_refused","message":"it was used"}}""")
        assertEquals("ticket_refused", (server.client.reason as PushRefusedException).code)
        server.waits(20)
        assertEquals(parse("""{"renew":{"ticket":"ticket-4"}}"""), server.socket.sent.last())
    }

    @Test
    fun `credentials that cannot be had are asked for again, but one's own refusal ends the client`() {
        val signedOut = PushRefusedException("signed_out", "nobody is signed in")
        val errors = mutableListOf(IllegalStateException("the disk is full"), signedOut)
        withServer({ throw errors.removeAt(0) }) { server ->
            server.settles()
            assertTrue("the disk is full" in server.client.reason!!.message!!)
            server.passes(1.seconds)

            assertEquals(listOf(Need.CONNECT, Need.CONNECT), server.needs)
            assertEquals(signedOut, server.client.reason)
            assertEquals(State.CLOSED, server.client.state.value)
        }
    }

    @Test
    fun `credentials follow no redirect`() = runBlocking {
        val asked = CopyOnWriteArrayList<String>()
        ServerSocket(0, 9, InetAddress.getLoopbackAddress()).use { server ->
            thread { runCatching { while (true) server.accept().use { asked += redirected(it) } } }
            PushClient("ws://127.0.0.1:${server.localPort}/v1/stream") { mapOf("apikey" to "k") }.use { client ->
                client.state.first { it == State.WAITING }

                assertEquals("302", (client.reason as PushRefusedException).code)
                assertEquals(setOf("GET /v1/stream HTTP/1.1"), asked.toSet())
                assertThrows(PushRefusedException::class.java) { runBlocking { client.call("GET", "stores") } }
                assertEquals(setOf("GET /v1/stream HTTP/1.1", "GET /v1/stores HTTP/1.1"), asked.toSet())
            }
        }
    }

    /** Answers with a redirect to another address; returns the first line of the request. */
    private fun redirected(asking: java.net.Socket): String {
        val lines = asking.getInputStream().bufferedReader().lineSequence().takeWhile { it.isNotEmpty() }.toList()
        val answer = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        asking.getOutputStream().write(answer.toByteArray())
        return lines.first()
    }
}
