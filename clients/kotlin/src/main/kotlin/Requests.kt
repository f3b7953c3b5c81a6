/** The frames of a client: the watches to be asked for, in as few as an edge takes. */
package io.statecast.push

import okio.utf8Size

/** The largest frame of a client, until `hello` names another. */
internal const val MAX_REQUEST_BYTES = 65_536L

/** The watches by their numbers on this socket, and those that the edge has not been asked for yet. */
internal class Requests(watches: Collection<Watch> = emptyList()) {
    /** The watches that the edge has been asked for, and has not ended. */
    val byNumber = mutableMapOf<Long, Watch>()
    private var number = 0L
    private val unasked = LinkedHashSet(watches)
    private val unwatched = mutableListOf<Long>()

    /** Adds a watch to be asked for, unless it has been. */
    fun watch(watch: Watch) {
        if (watch.number == null) unasked += watch
    }

    /** Adds a watch to be ended. */
    fun unwatch(watch: Watch) {
        unasked -= watch
        watch.number?.let { unwatched += it }
        ended(watch)
    }

    /** Notes that a watch has ended at the edge: frames of its number are no longer its own. */
    fun ended(watch: Watch) {
        watch.number?.let(byNumber::remove)
        watch.cut()
    }

    /** Makes frames of at most so many bytes of all that waits. */
    fun frames(maxBytes: Long): List<String> {
        val frames = mutableListOf<String>()
        if (unwatched.isNotEmpty()) frames += """{"unwatch":${unwatched.joinToString(",", "[", "]")}}"""
        val room = maxBytes - """{"watch":[]}""".length
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
