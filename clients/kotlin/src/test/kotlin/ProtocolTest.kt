package io.statecast.push

import kotlin.random.Random
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource

class ProtocolTest {
    @ParameterizedTest
    @CsvSource("1006,CONNECT", "1011,CONNECT", "1012,CONNECT", "1009,END", "4401,RENEW", "4403,END")
    internal fun `a close code says the next step`(code: Int, then: Then) {
        val ending = ofClose(code, "because")

        assertEquals(then to "$code", ending.then to (ending.error as PushRefusedException).code)
        assertTrue("because" in ending.error.message!!)
    }

    @ParameterizedTest
    @CsvSource("401,RENEW", "403,END", "404,END", "408,CONNECT", "429,CONNECT", "500,CONNECT", "502,CONNECT", "503,CONNECT")
    internal fun `a status of the handshake says the next step`(status: Int, then: Then) =
        assertEquals(then, ofRefusal(status, null, "").then)

    @Test
    fun `a refusal may say when to come again`() {
        assertEquals(7.seconds, ofRefusal(429, "7", "").pause)
        assertEquals(0.seconds, ofRefusal(503, "Fri, 27 Nov 2026 12:00:00 GMT", "").pause)
    }

    @Test
    fun `the sentence of an answer is that of the edge, the gateway or a proxy, on one line`() {
        assertEquals("a \"b\"", reasonIn("""{"error":{"code":"c","message":"a \"b\""}}"""))
        assertEquals("no route", reasonIn("""{"message":"no route"}"""))
        assertEquals("<h1> bad gateway </h1>", reasonIn("<h1>\n  bad gateway\n</h1>"))
    }

    @Test
    fun `pauses double up to ten seconds, and vary by half`() {
        val ceilings = listOf(250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000).map { it.milliseconds }
        val backoff = Backoff(Random(7))
        for (ceiling in ceilings) assertTrue(backoff.next() in ceiling / 2..ceiling, "$ceiling")

        backoff.reset()
        assertTrue(backoff.next() in 125.milliseconds..250.milliseconds)
    }

    @Test
    fun `access is renewed a fifth before its end, five minutes at most, and not more often than each second`() {
        assertEquals(8.seconds, renewalPause(10.seconds))
        assertEquals(55.minutes, renewalPause(60.minutes))
        assertEquals(1.seconds, renewalPause(0.1.seconds))
    }
}
