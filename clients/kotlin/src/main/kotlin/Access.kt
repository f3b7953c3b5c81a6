/** Gets the credentials of a live connection, and calls the edge with them. */
package io.statecast.push

import java.io.IOException
import java.util.concurrent.TimeUnit
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import okhttp3.*
import okhttp3.Headers.Companion.toHeaders
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.RequestBody.Companion.toRequestBody

/**
 * The need for credentials: to connect or to call, to renew an open connection in time, or because the last expired.
 */
public enum class Need { CONNECT, EXPIRING, EXPIRED }

/** Returns HTTP headers, for example `mapOf("apikey" to KEY)`. */
public typealias Credentials = suspend (Need) -> Map<String, String>

private const val TIMEOUT_S = 10L

internal class Access(
    private val address: HttpUrl,
    private val calls: OkHttpClient,
    private val credentials: Credentials?,
    private val io: CoroutineDispatcher,
) {
    /** Whether newer credentials can be obtained. */
    val isRenewable = credentials != null

    /**
     * Returns the headers. Throws the errors of the app's function, and IllegalArgumentException for an invalid header.
     */
    suspend fun headers(need: Need): Headers = credentials?.invoke(need).orEmpty().toHeaders()

    /** Calls the edge at a path beside the socket's. Throws PushException, and the errors of the app's function. */
    suspend fun call(method: String, path: String, body: JsonObject?, need: Need): JsonObject {
        val url = address.resolve(path) ?: throw PushException("`$path` is no path beside $address")
        val content = body?.toString().orEmpty().toRequestBody(body?.let { "application/json".toMediaType() })
        val request = Request.Builder().url(url).headers(headers(need)).method(method, content.takeIf { method != "GET" })
        val call = calls.newCall(request.build())
        call.timeout().timeout(TIMEOUT_S, TimeUnit.SECONDS)
        try {
            val (status, text) = withContext(io) { call.execute().use { it.code to it.body?.string().orEmpty() } }
            if (status !in 200..299) throw PushRefusedException("$status", "$url answers $status: ${reasonIn(text)}")
            return if (text.isEmpty()) JsonObject(emptyMap()) else Json.parseToJsonElement(text).jsonObject
        } catch (error: IOException) {
            throw PushException("$url cannot be reached: $error", error)
        } catch (error: IllegalArgumentException) {
            throw PushException("$url does not answer as ws-edge does: $error", error)
        }
    }
}

/**
 * Returns the pause until access that expires in `left` is renewed: a fifth of `left` then remains, but at most 5
 * minutes.
 */
internal fun renewalPause(left: Duration): Duration = maxOf(1.seconds, left * 0.8, left - 5.minutes)
