/**
 * Applies the rules of protocol 2 in pure classes: takes frames, and gives rows, tokens and changes.
 *
 * Rows count at their token: a place collects the rows that it receives, and applies them with its next token. So its
 * rows always match a token that it holds. docs/websocket-protocol.md has the rules.
 */
package io.statecast.push

import kotlinx.serialization.json.*

/** The keys of the rows that lead to a place; empty for the watch itself. */
public typealias Path = List<String>

/** A row of a place. */
public data class Row(
    /** The row's key within its group; empty in a store with one row per group. */
    val key: String,
    val sort: String,
    /** The row as JSON, or the document in a store of JSON; limited to `fields`, if the watch has any. */
    val value: JsonElement,
    /** The number of versions that were left out since the last one, because a reader was too slow. */
    val skipped: Int = 0,
    /** When the change was committed at its source, in RFC 3339; set only with `times`. */
    val commitTime: String? = null,
)

/** The rows of a watch, or of a range below it, by key, as of a token. */
public data class Place(
    val rows: Map<String, Row> = emptyMap(),
    /** The token of `rows`; empty before the first one. */
    val token: String = "",
)

/** The change of a place up to a token. */
public data class Change(
    val path: Path,
    /** The rows that are new or may have changed, by key. */
    val rows: Map<String, Row> = emptyMap(),
    /** The keys of rows that have left, each with the error if the row cannot be shown. */
    val left: Map<String, PushRefusedException?> = emptyMap(),
    val token: String = "",
    /** Whether this change completes the watch, with all places below. */
    val current: Boolean = false,
    /** Whether the place has ended, because the row that leads to it has left. */
    val ended: Boolean = false,
) {
    /** Returns one change of the place that equals this one and the newer one. */
    internal fun followedBy(newer: Change): Change {
        val both = LinkedHashMap(rows - newer.left.keys)
        for ((key, row) in newer.rows) {
            val unread = both.remove(key)
            both[key] = if (unread == null) row else row.copy(skipped = row.skipped + unread.skipped + 1)
        }
        return newer.copy(rows = both, left = left - newer.rows.keys + newer.left, current = current || newer.current)
    }
}

/** Keeps a place up to date by its frames. */
private class LivePlace {
    var place = Place()
        private set

    /** Whether the next token replaces all rows. */
    var isAnew = true
        private set
    private var fields = JsonObject(emptyMap())
    private val waiting = mutableListOf<JsonObject>()

    fun begin(watching: JsonObject) {
        fields = watching
        waiting.clear()
        isAnew = !watching.flag("resumed")
    }

    fun cut() {
        waiting.clear()
        isAnew = place.token.isEmpty()
    }

    fun forgetToken() {
        place = place.copy(token = "")
        cut()
    }

    fun collect(rows: List<JsonObject>) = waiting.addAll(rows)

    fun commit(path: Path, token: String): Change {
        val before = place.rows
        val held = if (isAnew) LinkedHashMap() else LinkedHashMap(before)
        val (rows, left) = LinkedHashMap<String, Row>() to LinkedHashMap<String, PushRefusedException?>()
        for (frame in waiting) {
            val key = frame["key"]?.text ?: field(frame["row"], "key_field")
            if ("row" in frame || "delta" in frame) {
                rows[key] = rowOf(key, frame, held[key])
                held[key] = rows.getValue(key)
                left -= key
                continue
            }
            rows -= key
            val error = frame.part("error")?.let(::refusalOf)
            if (held.remove(key) != null || key in before || error != null) left[key] = error
        }
        if (isAnew) for (key in before.keys - held.keys - left.keys) left[key] = null
        place = Place(held, token)
        waiting.clear()
        isAnew = false
        return Change(path, rows, left, token)
    }

    fun bookmark(token: String) {
        if (!isAnew && waiting.isEmpty()) place = place.copy(token = token)
    }

    private fun rowOf(key: String, frame: JsonObject, before: Row?): Row {
        val value = frame["row"] ?: patched(key, before, frame.getValue("delta"))
        val sort = frame["sort"]?.text ?: field(value, "sort_field").ifEmpty { before?.sort.orEmpty() }
        return Row(key, sort, value, frame.number("skipped").toInt(), frame["commit_time"]?.text)
    }

    /** Returns the row after a merge patch of one level: fields with new values, null for removed fields. */
    private fun patched(key: String, before: Row?, delta: JsonElement): JsonObject {
        if (before == null) throw PushException("the edge tells fields of the row `$key`, which this client does not hold")
        val (gone, changed) = delta.jsonObject.entries.partition { it.value is JsonNull }
        return JsonObject(before.value.jsonObject - gone.map { it.key }.toSet() + changed.map { it.key to it.value })
    }

    private fun field(row: JsonElement?, name: String): String =
        fields[name]?.let { (row as? JsonObject)?.get(it.text)?.text }.orEmpty()
}

/**
 * Keeps the places of one watch: the watch itself at the empty path, and those below.
 *
 * Begins with the result of `save()`, or with a page by REST. Throws RuntimeException when it is neither.
 */
internal class Places(resume: JsonObject? = null) {
    private val places = linkedMapOf<Path, LivePlace>(emptyList<String>() to LivePlace())

    /** Whether everything has come since the watch began. */
    var current = false
        private set

    /** Whether the watch itself resumed from its token when it last began; null before. */
    var resumed: Boolean? = null
        private set

    init {
        resume?.let { listOf(it) + it.parts("below") }?.forEach(::restore)
    }

    val own: Place get() = places.getValue(emptyList()).place

    fun all(): Map<Path, Place> = places.mapValues { it.value.place }

    /** Returns the tokens to resume from as JSON, or also the rows: the shortest paths first, without the empty one. */
    fun save(withRows: Boolean): List<JsonObject> {
        val held = all().toList().filter { (_, place) -> place.token.isNotEmpty() }
        return held.sortedBy { (path, _) -> path.size }.map { (path, place) ->
            buildJsonObject {
                putTexts("path", path)
                if (withRows) put("rows", JsonArray(place.rows.values.map(::saved)))
                put("token", place.token)
            }
        }
    }

    fun cut() {
        current = false
        places.values.forEach(LivePlace::cut)
    }

    fun forgetTokens() = places.values.forEach(LivePlace::forgetToken)

    /** Takes a frame about the watch; returns its changes. Throws PushException for a wrong one. */
    fun take(frame: JsonObject): List<Change> {
        val path = frame.path()
        frame.part("watching")?.let { begin(path, it) }
        val changes = mutableListOf<Change>()
        places[path]?.let { place ->
            val rows = frame.parts("rows")
            for (row in rows) if (row.flag("left")) changes += end(path + row["key"]?.text.orEmpty())
            place.collect(rows)
            frame["token"]?.let { changes += commit(path, place, it.text) }
        }
        if (frame.flag("current")) {
            current = true
            changes += Change(emptyList(), token = own.token, current = true)
        }
        if (path.isNotEmpty() && "ended" in frame) changes += end(path)
        return changes
    }

    fun bookmark(bookmark: JsonObject) {
        bookmark["token"]?.let { places[bookmark.path()]?.bookmark(it.text) }
    }

    private fun restore(saved: JsonObject) {
        val place = places.getOrPut(saved.path(), ::LivePlace)
        place.begin(buildJsonObject { put("resumed", true) })
        place.collect(saved.parts("rows"))
        place.commit(emptyList(), saved.getValue("token").text)
    }

    private fun begin(path: Path, watching: JsonObject) {
        val place = places.getOrPut(path, ::LivePlace)
        place.begin(watching)
        if (path.isNotEmpty()) return
        resumed = !place.isAnew
        current = false
    }

    private fun commit(path: Path, place: LivePlace, token: String): List<Change> {
        val wasAnew = place.isAnew
        val change = place.commit(path, token)
        if (!wasAnew) return listOf(change)
        val below = places.keys.filter { it.size > path.size && it.startsWith(path) }.map { it.take(path.size + 1) }.distinct()
        return listOf(change) + below.filter { it.last() !in place.place.rows }.flatMap(::end)
    }

    private fun end(path: Path): List<Change> {
        val ended = places.filterKeys { it.startsWith(path) }
        places -= ended.keys
        return ended.map { (each, it) -> Change(each, left = it.place.rows.mapValues { null }, ended = true) }
    }
}

private fun saved(row: Row) = buildJsonObject {
    put("key", row.key)
    putText("sort", row.sort)
    put("row", row.value)
    row.commitTime?.let { put("commit_time", it) }
}

private fun Path.startsWith(top: Path) = size >= top.size && subList(0, top.size) == top
