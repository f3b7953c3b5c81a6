/** Reads the parts of frames, and throws IllegalArgumentException for a part of another type than expected. */
package io.statecast.push

import kotlinx.serialization.json.*

internal val JsonElement.text: String get() = jsonPrimitive.content

internal fun JsonObject.flag(name: String): Boolean = this[name]?.text == "true"

internal fun JsonObject.number(name: String): Long = this[name]?.jsonPrimitive?.long ?: 0

internal fun JsonObject.part(name: String): JsonObject? = this[name]?.jsonObject

internal fun JsonObject.parts(name: String): List<JsonObject> = this[name]?.jsonArray?.map { it.jsonObject }.orEmpty()

internal fun JsonObject.path(): Path = this["path"]?.jsonArray?.map { it.text }.orEmpty()

/** Adds a field unless it has its default value, like proto3 JSON. */
internal fun JsonObjectBuilder.putText(name: String, text: String) {
    if (text.isNotEmpty()) put(name, text)
}

internal fun JsonObjectBuilder.putTexts(name: String, texts: List<String>) {
    if (texts.isNotEmpty()) put(name, JsonArray(texts.map(::JsonPrimitive)))
}

internal fun JsonObjectBuilder.putParts(name: String, parts: List<JsonObject>) {
    if (parts.isNotEmpty()) put(name, JsonArray(parts))
}
