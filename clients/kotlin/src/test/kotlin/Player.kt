/** Plays the client in the scenario of all clients; testkit.push_player documents the commands. */
package io.statecast.push

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.system.exitProcess
import kotlin.time.DurationUnit
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.launch
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.put

private val NOTHING = JsonObject(emptyMap())

/** A watch, and the changes that it has received. */
@OptIn(DelicateCoroutinesApi::class)
private class Watching(val watch: Watch) {
    private val changes = CopyOnWriteArrayList<JsonArray>()
    @Volatile private var ended: String? = null

    init {
        GlobalScope.launch {
            try {
                watch.changes.collect(::take)
            } catch (error: PushException) {
                ended = codeOf(error)
            }
        }
    }

    private fun take(change: Change) {
        for ((key, row) in change.rows) changes += entry(change.path + key, row.value)
        for ((key, error) in change.left) changes += entry(change.path + key, JsonPrimitive(error?.code))
    }

    fun state(): JsonObject = buildJsonObject {
        put("rows", JsonObject(watch.places.flatMap { (path, place) -> rowsOf(path, place) }.toMap()))
        put("changes", JsonArray(changes))
        put("current", watch.current)
        put("resumed", watch.resumed)
        put("stale", watch.stale?.toDouble(DurationUnit.SECONDS))
        put("ended", ended)
    }

    private fun rowsOf(path: Path, place: Place) = place.rows.map { (key, row) -> name(path + key) to row.value }
    private fun entry(path: Path, value: JsonElement) = JsonArray(listOf(JsonPrimitive(name(path)), value))
    private fun name(path: Path) = path.joinToString("/")
}

private class Player {
    @Volatile private var headers: Map<String, String>? = null
    private val needs = CopyOnWriteArrayList<String>()
    private val watches = ConcurrentHashMap<String, Watching>()
    private lateinit var client: PushClient

    fun answer(command: JsonObject): JsonObject = when (val word = command.getValue("do").text) {
        "open" -> open(command)
        "credentials" -> NOTHING.also { headers = headersIn(command) }
        "watch" -> NOTHING.also { watches[nameIn(command)] = Watching(watch(command.getValue("what").jsonObject, command)) }
        "unwatch" -> NOTHING.also { watches.remove(nameIn(command))?.watch?.unwatch() }
        "saved" -> buildJsonObject { put("saved", watches.getValue(nameIn(command)).watch.save()) }
        "wake" -> NOTHING.also { client.check() }
        "state" -> state()
        else -> error("no player does $word")
    }

    private fun open(command: JsonObject): JsonObject {
        headers = headersIn(command)
        client = PushClient(command.getValue("address").text) { need ->
            needs += need.name.lowercase()
            checkNotNull(headers) { "there are no credentials now" }
        }
        return NOTHING
    }

    private fun watch(what: JsonObject, command: JsonObject): Watch {
        val resume = command["saved"]?.takeIf { it !is JsonNull }?.text
        what["channel"]?.let { return client.watchChannel(it.text, resume) }
        return client.watch(
            what.getValue("store").text,
            what.getValue("group").text,
            limit = what.number("limit").toInt(),
            reverse = what.flag("reverse"),
            steps = what.parts("steps").map { Step(it.getValue("store").text, it.getValue("group_field").text) },
            fields = (what["fields"] as? JsonArray)?.map { it.text }.orEmpty(),
            intervalMs = what["interval_ms"]?.text?.toInt(),
            resume = resume,
        )
    }

    private fun state() = buildJsonObject {
        put("reason", client.reason?.let(::codeOf))
        put("needs", JsonArray(needs.map(::JsonPrimitive)))
        put("watches", JsonObject(watches.mapValues { it.value.state() }))
    }

    private fun nameIn(command: JsonObject) = command.getValue("name").text

    private fun headersIn(command: JsonObject) =
        command["headers"].takeIf { it !is JsonNull }?.jsonObject?.mapValues { it.value.text }
}

private fun codeOf(error: PushException) = (error as? PushRefusedException)?.code ?: "lost"

fun main() {
    val player = Player()
    generateSequence(::readLine).forEach { println(player.answer(Json.parseToJsonElement(it).jsonObject)) }
    exitProcess(0) // OkHttp's threads would stay for a minute
}
