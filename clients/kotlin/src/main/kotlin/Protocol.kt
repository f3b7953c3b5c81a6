/**
 * Decides the next step when a connection to the socket `/v1/stream` ends, and tells its errors apart.
 *
 * A broken connection is not an error: the client connects again. The clients in Python and JavaScript decide the same.
 */
package io.statecast.push

import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

internal const val SUBPROTOCOL = "statecast.push.v2+json"

/** Reports that the client has been closed, is used wrongly, or cannot connect at the moment. The message says why. */
public open class PushException(message: String, cause: Throwable? = null) : Exception(message, cause)

/** Reports a refusal of the server. [code] is the stable code in its frame, the HTTP status or the close code. */
public class PushRefusedException(public val code: String, message: String) : PushException(message)

/** Returns the error of a Problem or an Ended. */
internal fun refusalOf(problem: JsonObject): PushRefusedException {
    val code = problem["code"]?.text.orEmpty()
    return PushRefusedException(code, problem["message"]?.text ?: code)
}

/** The next step: connect; connect once with a newer credential, or end if none can be obtained; end. */
internal enum class Then { CONNECT, RENEW, END }

/** The end of a connection: its cause, the next step, and the shortest time to wait before it. */
internal class Ending(val then: Then, val error: PushException, val pause: Duration = Duration.ZERO)

private val FIRST_PAUSE = 250.milliseconds
private val MAX_PAUSE = 10.seconds

/** Computes pauses that double with each failure, up to a maximum; jitter keeps clients from returning all at once. */
internal class Backoff(private val chance: Random) {
    private var ceiling = FIRST_PAUSE

    fun reset() { ceiling = FIRST_PAUSE }

    /** Returns the next pause: a random one from half of the ceiling to the ceiling. */
    fun next(): Duration {
        val pause = ceiling * (0.5 + chance.nextDouble() / 2)
        ceiling = minOf(ceiling * 2, MAX_PAUSE)
        return pause
    }
}

/** Returns the ending for a close code: another attempt with the tokens, unless the code rules it out. */
internal fun ofClose(code: Int, reason: String): Ending = when (code) {
    1009 -> refused(Then.END, "a frame is larger than its receiver takes", code, reason)
    4401 -> refused(Then.RENEW, "the credential has expired", code, reason)
    4403 -> refused(Then.END, "the operators have ended this consumer's access", code, reason)
    else -> refused(Then.CONNECT, "the connection was closed", code, reason)
}

/** Returns the ending for an HTTP status in answer to the handshake. [retryAfter] is the header, in seconds. */
internal fun ofRefusal(status: Int, retryAfter: String?, body: String): Ending {
    val pause = retryAfter?.toLongOrNull()?.seconds ?: Duration.ZERO
    return when (status) {
        401 -> refused(Then.RENEW, "the credential is not accepted", status, reasonIn(body))
        408, 429, !in 400..499 -> refused(Then.CONNECT, "the connection was refused", status, reasonIn(body), pause)
        else -> refused(Then.END, "the connection was refused", status, reasonIn(body))
    }
}

/** Returns the ending for a failure that does not rule out another attempt. */
internal fun tryAgain(text: String, cause: Throwable? = null) = Ending(Then.CONNECT, PushException(text, cause))

private fun refused(then: Then, text: String, number: Int, reason: String, pause: Duration = Duration.ZERO): Ending {
    val details = if (reason.isEmpty()) "$number" else "$number: $reason"
    return Ending(then, PushRefusedException("$number", "$text ($details)"), pause)
}

/** Returns the error message of the edge or the gateway, on one line. */
internal fun reasonIn(body: String): String {
    val document = runCatching { Json.parseToJsonElement(body) }.getOrNull() as? JsonObject // else a page of a proxy
    val sentence = ((document?.get("error") as? JsonObject ?: document)?.get("message") as? JsonPrimitive)?.content ?: body
    return sentence.trim().replace(Regex("\\s+"), " ").take(300)
}
