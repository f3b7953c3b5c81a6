/** Packs the requests of a client into as few frames as the edge accepts. */
package io.statecast.push

import okio.utf8Size

/** The largest frame of a client, until `hello` names another size. */
internal const val MAX_REQUEST_BYTES = 65_536L

/** Keeps the watches of this socket by number, and the requests that are still to be sent. */
internal class Requests(watches: Collection<Watch> = emptyList()) {
    /** The watches that were requested from the edge and that it has not ended. */
    val byNumber = mutableMapOf<Long, Watch>()
    private var number = 0L
    private val unasked = LinkedHashSet(watches)
    private val unwatched = mutableListOf<Long>()

    /** Adds a request for a watch, unless it was already sent. */
    fun watch(watch: Watch) {
        if (watch.number == null) unasked += watch
    }

    /** Adds a request to end a watch. */
    fun unwatch(watch: Watch) {
        unasked -= watch
        watch.number?.let { unwatched += it }
        ended(watch)
    }

    /** Notes that a watch has ended at the edge, so that later frames with its number are not its own. */
    fun ended(watch: Watch) {
        watch.number?.let(byNumber::remove)
        watch.cut()
    }

    /** Takes the waiting requests; returns frames of at most so many bytes. */
    fun frames(maxBytes: Long): List<String> {
        val room = maxBytes - """{"unwatch":[]}""".length
        val fitting = (room / "4294967295,".length).toInt().coerceAtLeast(1)
        val frames = unwatched.chunked(fitting) { it.joinToString(",", """{"unwatch":[""", "]}") }
        val batches = mutableListOf<MutableList<String>>()
        var free = 0L
        for (watch in unasked) {
            val request = watch.request(++number, room).toString()
            byNumber[number] = watch
            if (request.utf8Size() > free) {
                batches += mutableListOf<String>()
                free = room
            }
            batches.last() += request
            free -= request.utf8Size() + 1
        }
        unasked.clear()
        unwatched.clear()
        return frames + batches.map { it.joinToString(",", """{"watch":[""", "]}") }
    }
}
