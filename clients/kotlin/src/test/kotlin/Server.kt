package io.statecast.push

import java.io.EOFException
import java.net.ProtocolException
import kotlin.random.Random
import kotlin.time.Duration
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runCurrent
import kotlinx.coroutines.test.runTest
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody.Companion.toResponseBody
import okhttp3.WebSocket
import okhttp3.WebSocketListener
import okio.ByteString

const val HELLO = """{"hello":{"protocol":2,"expires_in_s":1000,"max_request_bytes":65536}}"""

const val PING = """{"ping":{}}"""

fun parse(text: String): JsonObject = Json.parseToJsonElement(text) as JsonObject

/** Lets a test play the edge on a socket. */
class Socket(private val request: Request, private val listener: WebSocketListener) : WebSocket {
    val sent = mutableListOf<JsonObject>()
    var isCancelled = false
    var closedWith: Int? = null

    /** The requested watches. */
    val watches get() = sent.flatMap { it["watch"]?.jsonArray.orEmpty() }.map { it as JsonObject }

    fun opens(subprotocol: String = "statecast.push.v2+json") =
        listener.onOpen(this, response(101).header("Sec-WebSocket-Protocol", subprotocol).build())

    fun tells(frame: String) = listener.onMessage(this, frame)

    fun ends(code: Int) = listener.onClosing(this, code, "")

    fun breaks() = listener.onFailure(this, EOFException(), null)

    fun refuses(status: Int, vararg headers: Pair<String, String>) {
        val answer = response(status).body("""{"error":{"code":"x","message":"the edge says no"}}""".toResponseBody())
        headers.forEach { (name, value) -> answer.header(name, value) }
        listener.onFailure(this, ProtocolException("no 101"), answer.build())
    }

    override fun send(text: String): Boolean = sent.add(parse(text))
    override fun send(bytes: ByteString): Boolean = error("a text is expected")
    override fun cancel() { isCancelled = true }
    override fun close(code: Int, reason: String?): Boolean { closedWith = code; return true }
    override fun queueSize(): Long = 0
    override fun request(): Request = request

    private fun response(status: Int) =
        Response.Builder().request(request).protocol(Protocol.HTTP_1_1).code(status).message("-")
}

/** Runs a client with a clock that the test sets, and keeps its sockets and calls. */
@OptIn(ExperimentalCoroutinesApi::class)
class Server(private val scope: TestScope, credentials: Credentials? = { mapOf("apikey" to "k") }) {
    val sockets = mutableListOf<Socket>()
    val needs = mutableListOf<Need>()
    val calls = mutableListOf<Request>()

    /** The statuses of the next calls; when empty, calls get 200 with a ticket. */
    val statuses = mutableListOf<Int>()
    private val dispatcher = StandardTestDispatcher(scope.testScheduler)
    private val http = OkHttpClient.Builder().addInterceptor { chain ->
        calls += chain.request()
        val status = statuses.removeFirstOrNull() ?: 200
        Response.Builder().request(chain.request()).protocol(Protocol.HTTP_1_1).code(status).message("-")
            .body("""{"ticket":"ticket-${calls.size}"}""".toResponseBody()).build()
    }.build()
    val client = PushClient(
        "ws://edge.test/v1/stream",
        http,
        credentials?.let { { need -> needs += need; it(need) } },
        { request, listener -> Socket(request, listener).also(sockets::add) },
        dispatcher,
        dispatcher,
        scope.testScheduler.timeSource,
        Random(1),
    )

    val socket get() = sockets.last()

    /** Runs all tasks that are due now. */
    fun settles() = scope.runCurrent()

    fun passes(time: Duration) {
        scope.advanceTimeBy(time)
        scope.runCurrent()
    }

    /** Accepts the socket that the client opens. */
    fun opens(hello: String = HELLO) {
        settles()
        socket.opens()
        settles()
        tells(hello)
    }

    fun tells(frame: String) {
        socket.tells(frame)
        settles()
    }
}

fun withServer(credentials: Credentials? = { mapOf("apikey" to "k") }, test: suspend TestScope.(Server) -> Unit) = runTest {
    val server = Server(this, credentials)
    server.client.use { test(server) }
}
