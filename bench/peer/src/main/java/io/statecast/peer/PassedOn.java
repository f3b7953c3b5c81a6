package io.statecast.peer;

import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;

/** Marks the calls that another instance has passed on: they are answered here and never passed on again. */
final class PassedOn implements ServerInterceptor {
  private static final Metadata.Key<String> HEADER = Metadata.Key.of("passed-on", Metadata.ASCII_STRING_MARSHALLER);
  private static final Context.Key<Boolean> CALL = Context.keyWithDefault("passed-on", false);

  /** Returns the headers with which an instance passes a call on. */
  static Metadata headers() {
    Metadata headers = new Metadata();
    headers.put(HEADER, "1");
    return headers;
  }

  /** Returns whether the current call on this thread was passed on. */
  static boolean here() {
    return CALL.get();
  }

  @Override
  public <Q, R> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
    return headers.containsKey(HEADER)
        ? Contexts.interceptCall(Context.current().withValue(CALL, true), call, headers, next)
        : next.startCall(call, headers);
  }
}
