/** Offers apps watches over one live connection to an edge. */
package io.statecast.push

import java.io.Closeable
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.*
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.serialization.json.*
import okhttp3.HttpUrl.Companion.toHttpUrlOrNull
import okhttp3.OkHttpClient
import okhttp3.WebSocket

/** A range of a store for each row of the step before. */
public data class Step(
    val store: String,
    /** The text field with the group, in the row of the step before. */
    val groupField: String,
    val sortFrom: String = "",
    val sortTo: String = "",
    val limit: Int = 0,
    val reverse: Boolean = false,
    val fields: List<String> = emptyList(),
)

/**
 * Keeps watches over one live connection to an edge.
 *
 *     val client = PushClient("wss://GATEWAY/v1/stream") { mapOf("apikey" to KEY) }
 *     client.watch("odds-by-match", "match-000123").changes.collect { change -> … }
 *
 * It reconnects by itself, and resumes every watch after its last token. It ends when the server refuses it for good,
 * or when newer credentials cannot be obtained. Then the flow of every watch, and every later call, throws the error.
 */
public class PushClient internal constructor(
    address: String,
    http: OkHttpClient,
    credentials: Credentials?,
    sockets: WebSocket.Factory?,
    dispatcher: CoroutineDispatcher,
    io: CoroutineDispatcher,
    clock: TimeSource.WithComparableMarks = TimeSource.Monotonic,
    chance: Random = Random,
) : Closeable {
    /**
     * Connects to the socket `/v1/stream` at the address, with the app's [http] for proxies, certificates and so on.
     *
     * The client asks `credentials` for headers before each connection and call. While a connection is open, it asks
     * again before access expires: when a fifth of the time remains, but at most 5 minutes ahead. It then renews the
     * connection with a ticket from `/v1/tickets`, and goes on without a gap. It also asks once when the server no
     * longer accepts the last headers. When `credentials` throws, it is asked again; but a PushException ends the
     * client, unless it is connected. Throws PushException for an invalid address.
     */
    public constructor(address: String, http: OkHttpClient = OkHttpClient(), credentials: Credentials? = null) :
        this(address, http, credentials, null, Dispatchers.Default.limitedParallelism(1), Dispatchers.IO)

    private val lock = Any()
    private val scope = CoroutineScope(dispatcher)
    private val access: Access
    private val connection: Connection
    private val watches = LinkedHashSet<Watch>()

    /** The watches that the edge has ended for a while. They wait for its end on a new socket, too. */
    private val resting = mutableSetOf<Watch>()
    private val requested = Channel<Unit>(Channel.CONFLATED)
    private var requests = Requests()
    private var blind = emptyList<JsonObject>()
    private var ended: PushException? = null

    init {
        val url = address.takeIf { it.matches(Regex("wss?://.*")) }?.replaceFirst("ws", "http")?.toHttpUrlOrNull()
            ?: throw PushException("`$address` is not the address of a socket: give ws://… or wss://…")
        // Another address must not see the credentials.
        val direct = http.newBuilder().followRedirects(false).followSslRedirects(false).build()
        access = Access(url, direct, credentials, io)
        connection = Connection(url, access, sockets ?: direct, clock, chance, ::ask, ::receive)
        scope.launch { stayConnected() }
    }

    /** The state of the connection. */
    public val state: StateFlow<State> = connection.state.asStateFlow()

    /** The error that ended it, or that keeps it from connecting or renewing its access; null while all is well. */
    public val reason: PushException? get() = synchronized(lock) { ended } ?: connection.reason

    /** Notes that the app is in front again: connects at once, and reconnects if no frame comes within 5 seconds. */
    public fun check(): Unit = connection.check()

    /**
     * Watches a key, a range of a group, or with `steps` a query. The arguments are those of a Watch frame.
     *
     * `resume` is the result of `save()` of a watch, or a page by REST of the same range: newer rows follow, or all
     * rows when there is no other way. Throws PushException when it is neither, and the client's error when it has
     * ended.
     */
    public fun watch(
        store: String,
        group: String,
        sortFrom: String = "",
        sortTo: String = "",
        limit: Int = 0,
        reverse: Boolean = false,
        steps: List<Step> = emptyList(),
        fields: List<String> = emptyList(),
        times: Boolean = false,
        intervalMs: Int? = null,
        resume: String? = null,
    ): Watch {
        val range = Step(store, "", sortFrom, sortTo, limit, reverse, fields)
        return begin(resume) { saved ->
            put("group", group)
            putRange(range)
            putParts("steps", steps.map { buildJsonObject { putRange(it) } })
            if (saved.all { "rows" in it }) put("delta", true)
            if (times) put("times", true)
            intervalMs?.let { put("interval_ms", it) }
        }
    }

    /** Watches a channel: its rows are its watches by name, and each has a place below. Otherwise like `watch`. */
    public fun watchChannel(channel: String, resume: String? = null): Watch = begin(resume) { put("channel", channel) }

    /**
     * Calls the edge with the credentials, as in `call("POST", "channels")`; returns its JSON or throws PushException.
     */
    public suspend fun call(method: String, path: String, body: JsonObject? = null): JsonObject =
        access.call(method, path, body, Need.CONNECT)

    /** Ends the connection and all watches. */
    override fun close() {
        finish(PushException("this client is closed"), null)
        scope.cancel()
    }

    private fun begin(resume: String?, query: JsonObjectBuilder.(List<JsonObject>) -> Unit): Watch = synchronized(lock) {
        ended?.let { throw it }
        val watch = try {
            val saved = resume?.let { Json.parseToJsonElement(it).jsonObject }?.takeIf(::hasPlaces)
            val places = saved?.let { listOf(it) + it.parts("below") }.orEmpty()
            Watch(buildJsonObject { query(places) }, saved, lock, ::unwatch, ::stale)
        } catch (error: RuntimeException) { // a part is missing or has another type
            throw PushException("`resume` is neither `save()` of a watch nor a page with rows and token: $error", error)
        }
        watches += watch
        request(watch)
        watch
    }

    /** Requests a watch, also again when the edge has ended it with a time to retry. */
    private fun request(watch: Watch) = synchronized(lock) {
        resting -= watch
        if (watch in watches) requests.watch(watch)
        requested.trySend(Unit)
    }

    private fun unwatch(watch: Watch) = synchronized(lock) {
        if (watches.remove(watch)) requests.unwatch(watch)
        requested.trySend(Unit)
    }

    private suspend fun stayConnected() {
        val error = try {
            connection.run()
        } catch (bug: RuntimeException) { // nobody awaits this coroutine, but collectors wait for its rows
            currentCoroutineContext().ensureActive()
            PushException("the client has failed: $bug", bug)
        }
        finish(error, error)
    }

    /** Sends the requests of all watches on a new socket, and of later ones, while another coroutine reads. */
    private suspend fun ask() {
        synchronized(lock) {
            watches.forEach(Watch::cut)
            requests = Requests(watches - resting)
            blind = emptyList()
        }
        requested.trySend(Unit)
        for (signal in requested) {
            synchronized(lock) { requests.frames(connection.maxRequestBytes) }.forEach { connection.send(it) }
        }
    }

    private fun receive(frame: JsonObject) = synchronized(lock) {
        frame.part("ping")?.let(::ping)
        val watch = requests.byNumber[frame.number("id")] ?: return
        try {
            watch.take(frame)
        } catch (error: PushException) {
            log.warning("a watch begins anew: ${error.message}")
            requests.unwatch(watch)
            watch.forgetTokens()
            request(watch)
            return
        }
        if (frame.path().isEmpty()) frame.part("ended")?.let { end(watch, it) }
    }

    private fun ping(ping: JsonObject) {
        for (bookmark in ping.parts("bookmarks")) requests.byNumber[bookmark.number("id")]?.bookmark(bookmark)
        blind = ping.parts("blind")
    }

    private fun stale(watch: Watch): Duration? {
        if (state.value != State.OPEN) return connection.lostAt.elapsedNow()
        val own = blind.filter { each -> each["ids"]?.jsonArray?.none { it.text == "${watch.number}" } != true }
        return own.maxOfOrNull { it.number("lag_s").seconds }
    }

    private fun end(watch: Watch, ended: JsonObject) {
        requests.ended(watch)
        if ("retry_ms" in ended) {
            resting += watch
            scope.launch {
                delay(ended.number("retry_ms").milliseconds)
                request(watch)
            }
            return
        }
        watches -= watch
        watch.finish(refusalOf(ended))
    }

    /** Ends the client, and its watches with an error if there is one; only the first call counts. */
    private fun finish(error: PushException, ofWatches: PushException?) = synchronized(lock) {
        if (ended != null) return
        ended = error
        watches.forEach { it.finish(ofWatches) }
        watches.clear()
        connection.state.value = State.CLOSED
    }
}

/** Returns whether a token had come when it was saved. */
private fun hasPlaces(saved: JsonObject) = saved.parts("below").isNotEmpty() || (saved - "below").isNotEmpty()

private fun JsonObjectBuilder.putRange(range: Step) {
    put("store", range.store)
    putText("group_field", range.groupField)
    putText("sort_from", range.sortFrom)
    putText("sort_to", range.sortTo)
    if (range.limit != 0) put("limit", range.limit)
    if (range.reverse) put("reverse", true)
    putTexts("fields", range.fields)
}
