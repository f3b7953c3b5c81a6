/** Keeps one socket to an edge: connects again when it breaks or is silent, and renews its access before it expires. */
package io.statecast.push

import java.util.logging.Logger
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.*
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import okhttp3.*
import okio.ByteString

/** The state of a client's connection. [WAITING] means waiting for the next attempt. */
public enum class State { CONNECTING, OPEN, WAITING, CLOSED }

private val HANDSHAKE = 10.seconds

/** A connection without a frame for so long is dead: an idle edge sends pings. */
private val SILENCE = 45.seconds

/** The longest silence of a connection after a ping of the client. */
private val CHECK = 5.seconds

/** OkHttp closes a socket when 16 MiB wait to be sent, which may happen while an edge throttles. */
private const val MAX_QUEUED_BYTES = 1_000_000L
private const val LONGEST_REASON = 4096L
private const val SUBPROTOCOLS = "Sec-WebSocket-Protocol"
private const val NORMAL = 1000
private const val SWITCHING = 101
internal val log: Logger = Logger.getLogger("io.statecast.push")

/** Runs one socket at a time, in one coroutine. Calls [onOpen] after each hello, and [onFrame] for each frame. */
internal class Connection(
    private val address: HttpUrl,
    private val access: Access,
    private val sockets: WebSocket.Factory,
    private val clock: TimeSource.WithComparableMarks,
    chance: Random,
    private val onOpen: suspend () -> Unit,
    private val onFrame: (JsonObject) -> Unit,
) {
    val state = MutableStateFlow(State.CONNECTING)

    /** The time at which the last socket ended. */
    @Volatile var lostAt = clock.markNow()
        private set

    /** The reason why there is no socket, or why its access could not be renewed; null while all is well. */
    @Volatile var reason: PushException? = null
        private set

    /** The largest frame that the edge accepts. */
    var maxRequestBytes = MAX_REQUEST_BYTES
        private set
    private val backoff = Backoff(chance)
    private val hurry = Channel<Unit>(Channel.CONFLATED)
    private var need = Need.CONNECT
    private var isRenewed = false
    private var notBefore = clock.markNow()
    private var expiresAt = clock.markNow()
    private var renewal: Job? = null

    @Volatile private var line: Line? = null

    /** Stays connected; returns the error after which it does not try again. */
    suspend fun run(): PushException {
        while (true) {
            become(State.CONNECTING)
            val ending = connect()
            reason = ending.error
            if (ending.then == Then.END) return ending.error
            if (ending.then == Then.RENEW) {
                if (isRenewed || !access.isRenewable) return ending.error
                need = Need.EXPIRED
                isRenewed = true
            }
            become(State.WAITING)
            val asked = maxOf(ending.pause, -notBefore.elapsedNow(), Duration.ZERO)
            hurry.tryReceive()
            withTimeoutOrNull(asked + backoff.next()) { hurry.receive() }
        }
    }

    /** Sends a frame, if there is an open socket. */
    suspend fun send(text: String) {
        val socket = line?.socket ?: return
        while (socket.queueSize() > MAX_QUEUED_BYTES) delay(20.milliseconds)
        socket.send(text)
    }

    /** Connects again at once if there is no socket, or if the edge sends nothing for 5 seconds. */
    fun check() {
        hurry.trySend(Unit)
        line?.check()
    }

    private suspend fun connect(): Ending = coroutineScope {
        val headers = try {
            access.headers(need)
        } catch (error: PushException) {
            return@coroutineScope Ending(Then.END, error)
        } catch (error: Exception) { // the app's function may throw anything
            ensureActive()
            return@coroutineScope noCredentials(error)
        }
        val request = Request.Builder().url(address).headers(headers).header(SUBPROTOCOLS, SUBPROTOCOL).build()
        val opening = Line(this)
        line = opening
        try {
            opening.serve(sockets.newWebSocket(request, opening))
        } finally {
            if (opening.socket != null) lostAt = clock.markNow()
            line = null
            coroutineContext.cancelChildren()
        }
    }

    private fun become(next: State) = state.update { if (it == State.CLOSED) it else next }

    private fun expireIn(seconds: Long, scope: CoroutineScope) {
        renewal?.cancel()
        expiresAt = clock.markNow() + seconds.seconds
        if (access.isRenewable) renewal = scope.launch { renew() }
    }

    /** Sends a ticket in time. Retries after a failure until access expires; then the server ends the socket. */
    private suspend fun renew() {
        while (expiresAt.hasNotPassedNow()) {
            delay(renewalPause(-expiresAt.elapsedNow()))
            try {
                val ticket = access.call("POST", "tickets", null, Need.EXPIRING).getValue("ticket").text
                return send("""{"renew":{"ticket":"$ticket"}}""")
            } catch (error: Exception) { // the app's function may throw anything
                currentCoroutineContext().ensureActive()
                reason = noCredentials(error).error
            }
        }
    }

    /** Runs one socket. OkHttp's thread blocks while many events wait, so that the edge is slowed down. */
    private inner class Line(private val scope: CoroutineScope) : WebSocketListener() {
        private val events = Channel<() -> Ending?>(Channel.BUFFERED)
        private var deadline = clock.markNow() + HANDSHAKE

        /** The open socket. */
        var socket: WebSocket? = null
            private set

        /** Takes events until it ends. */
        suspend fun serve(opening: WebSocket): Ending {
            try {
                while (true) {
                    val event = withTimeoutOrNull(-deadline.elapsedNow()) { events.receive() } ?: break
                    event()?.let { return it }
                }
                opening.cancel()
                return tryAgain("$address is silent: the line is taken for dead")
            } finally {
                socket?.close(NORMAL, null) ?: opening.cancel()
                events.cancel()
            }
        }

        fun check() {
            events.trySend {
                if (socket?.send("""{"ping":{}}""") == true) deadline = minOf(deadline, clock.markNow() + CHECK)
                null
            }
        }

        override fun onOpen(webSocket: WebSocket, response: Response) = tell { open(webSocket, response.header(SUBPROTOCOLS)) }

        override fun onMessage(webSocket: WebSocket, text: String) = tell { receive(text) }

        override fun onMessage(webSocket: WebSocket, bytes: ByteString) = tell { receive(bytes.utf8()) }

        override fun onClosing(webSocket: WebSocket, code: Int, reason: String) = tell { ofClose(code, reason) }

        override fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) {
            val refusal = response?.takeIf { it.code != SWITCHING }?.let(::refusal)
            tell { refusal ?: tryAgain("$address cannot be reached: $t", t) }
        }

        private fun tell(event: () -> Ending?) {
            events.trySendBlocking(event) // fails when this socket has been given up
        }

        private fun open(opened: WebSocket, subprotocol: String?): Ending? {
            socket = opened
            deadline = clock.markNow() + SILENCE
            if (subprotocol != SUBPROTOCOL) {
                return end("$address does not speak $SUBPROTOCOL: give the socket /v1/stream of ws-edge")
            }
            need = Need.CONNECT
            reason = null
            become(State.OPEN)
            return null
        }

        private fun receive(text: String): Ending? {
            deadline = clock.markNow() + SILENCE
            try {
                take(Json.parseToJsonElement(text).jsonObject)
                return null
            } catch (error: IllegalArgumentException) {
                return end("$address sends a frame that is not of $SUBPROTOCOL: $error", error)
            }
        }

        private fun take(frame: JsonObject) {
            frame.part("hello")?.let {
                if ("max_request_bytes" in it) maxRequestBytes = it.number("max_request_bytes")
                if ("expires_in_s" in it) expireIn(it.number("expires_in_s"), scope)
                scope.launch { onOpen() }
                return
            }
            backoff.reset()
            isRenewed = false
            frame.part("access")?.let {
                reason = null
                expireIn(it.number("expires_in_s"), scope)
            }
            frame.part("reconnect")?.let { notBefore = clock.markNow() + it.number("delay_ms").milliseconds }
            frame.part("warning")?.let { log.warning("the edge warns: ${it["message"]?.text}") }
            frame.part("error")?.let(::refusalOf)?.let {
                reason = it
                log.warning("the edge refuses a frame: ${it.message} (${it.code})")
                if (it.code == "ticket_refused") renewal = scope.launch { renew() } // with a new ticket
            }
            onFrame(frame)
        }
    }
}

private fun end(text: String, cause: Throwable? = null) = Ending(Then.END, PushException(text, cause))

private fun noCredentials(cause: Exception) = tryAgain("the credentials could not be had: $cause", cause)

private fun refusal(response: Response): Ending {
    val body = runCatching { response.peekBody(LONGEST_REASON).string() }.getOrElse { "$it" }
    return ofRefusal(response.code, response.header("Retry-After"), body)
}
