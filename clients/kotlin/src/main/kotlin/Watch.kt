/** Gives a program the rows of a watch, and a flow of their changes. */
package io.statecast.push

import kotlin.time.Duration
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.json.*
import okio.utf8Size

/**
 * Keeps the rows of a key, a range, a query in steps or a channel, and their changes.
 *
 * Rows may be read on any thread; each map of rows is immutable.
 */
public class Watch internal constructor(
    private val query: JsonObject,
    resume: JsonObject?,
    private val lock: Any,
    private val onUnwatch: (Watch) -> Unit,
    private val onStale: (Watch) -> Duration?,
) {
    private val state = Places(resume)
    private val unread = LinkedHashMap<Path, Change>()
    private val woken = Channel<Unit>(Channel.CONFLATED)
    private var isOver = false
    private var error: PushException? = null

    /** The number of the watch on this socket; null before its request is sent, and after its end at the edge. */
    internal var number: Long? = null
        private set

    /**
     * A change for each token. One unread change per place is kept: a slow collector gets several changes as one, and
     * `skipped` of a row counts the versions that were left out. It completes when the watch is ended by [unwatch] or
     * the client is closed, and throws PushRefusedException when the server ends the watch. One collector at a time.
     */
    public val changes: Flow<Change> = flow { while (true) emit(next() ?: break) }

    /** The rows by key, as of [token]. */
    public val rows: Map<String, Row> get() = synchronized(lock) { state.own.rows }

    /** The token of [rows]; empty before the first rows are complete. */
    public val token: String get() = synchronized(lock) { state.own.token }

    /** The watch itself, at the empty path, and the places below it. */
    public val places: Map<Path, Place> get() = synchronized(lock) { state.all() }

    /** Whether everything has come since it began on this socket. */
    public val current: Boolean get() = synchronized(lock) { state.current }

    /** Whether it resumed from its token when it last began; null before. */
    public val resumed: Boolean? get() = synchronized(lock) { state.resumed }

    /** How long the rows may be out of date; null while the connection and the edge's reads work. */
    public val stale: Duration? get() = synchronized(lock) { onStale(this) }

    /** Returns its rows and tokens as JSON. Pass them to `watch` as `resume`, also after a restart of the app. */
    public fun save(): String {
        val (own, below) = synchronized(lock) { state.save(withRows = true) }.partition { "path" !in it }
        return JsonObject(own.firstOrNull().orEmpty() + ("below" to JsonArray(below))).toString()
    }

    /** Ends the watch. Unread changes are dropped. */
    public fun unwatch(): Unit = synchronized(lock) {
        unread.clear()
        finish(null)
        onUnwatch(this)
    }

    /** Returns the request with a number, and as many tokens of places below as fit into `room` bytes of JSON. */
    internal fun request(number: Long, room: Long): JsonObject {
        this.number = number
        val (own, below) = state.save(withRows = false).partition { "path" !in it }
        val request = JsonObject(mapOf("id" to JsonPrimitive(number)) + query + own.firstOrNull().orEmpty())
        var free = room - request.toString().utf8Size() - ""","below":[]""".length
        val fitting = below.takeWhile {
            free -= it.toString().utf8Size() + 1
            free >= 0
        }
        return if (fitting.isEmpty()) request else JsonObject(request + ("below" to JsonArray(fitting)))
    }

    /** Notes that the socket, or the watch on it, has ended, and forgets rows that wait for a token. */
    internal fun cut() {
        number = null
        state.cut()
    }

    /** Lets the watch begin anew: the rows stay until others replace them. */
    internal fun forgetTokens() = state.forgetTokens()

    /** Takes a frame about the watch. Throws PushException for a frame that contradicts the rows. */
    internal fun take(frame: JsonObject) {
        for (change in state.take(frame)) {
            unread[change.path] = unread[change.path]?.followedBy(change) ?: change
            woken.trySend(Unit)
        }
    }

    /** Takes a newer token of a quiet place. */
    internal fun bookmark(bookmark: JsonObject) = state.bookmark(bookmark)

    /** Ends the flow after the unread changes, with the error if there is one. */
    internal fun finish(error: PushException?) {
        if (!isOver) this.error = error
        isOver = true
        woken.trySend(Unit)
    }

    private suspend fun next(): Change? {
        while (true) {
            synchronized(lock) {
                unread.keys.firstOrNull()?.let { return unread.remove(it) }
                if (isOver) error?.let { throw it } ?: return null
            }
            woken.receive()
        }
    }
}
