"""A gRPC client made of HTTP/2 frames, which can misbehave as no library does: send half a call, or never read."""

import socket
import struct
from types import TracebackType
from typing import Self

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME_BYTES = 16_384
INITIAL_WINDOW_SIZE = 4
TIMEOUT_S = 30.0


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns one frame, which need not make sense."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def header_block(path: str, *more: tuple[str, str]) -> bytes:
    """Encodes a call's headers, none of them indexed or compressed; `\udc80` to `\udcff` are bytes, not UTF-8."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
    content = {"content-type": "application/grpc", "te": "trailers"}
    return b"".join(_literal(*field) for field in (*fields.items(), *content.items(), *more))


def call_frames(stream: int, path: str, request: bytes, *more: tuple[str, str]) -> bytes:
    """Returns a whole unary call with a request of one frame."""
    message = b"\0" + struct.pack(">I", len(request)) + request
    headers = frame(HEADERS, END_HEADERS, stream, header_block(path, *more))
    return headers + frame(DATA, END_STREAM, stream, message)


class RawConnection:
    """`with RawConnection("127.0.0.1:50051") as connection`; it answers nothing by itself, not even pings."""

    def __init__(self, address: str, window_bytes: int = 65_535) -> None:
        """Connects. `window_bytes` is how much of each response the server may send before the client reads."""
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window_bytes)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends the bytes unchecked. Raises OSError when the server has closed the connection."""
        self.socket.sendall(data)

    def reset(self) -> None:
        """Closes the connection at once, with a RST in place of a FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def until(self, kind: int) -> tuple[int, bytes]:
        """Reads frames up to one of this kind; returns its flags and payload. Raises EOFError when there is none."""
        while True:
            length, found, flags = struct.unpack(">IBB", b"\0" + self._read(9)[:5])
            payload = self._read(length)
            if found == kind:
                return flags, payload

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError("the server has closed the connection")
            data += more
        return data


def _literal(name: str, value: str) -> bytes:
    parts = (name.encode(), value.encode(errors="surrogateescape"))
    return b"\0" + b"".join(_length(len(part)) + part for part in parts)


def _length(number: int) -> bytes:
    """Encodes a number as HPACK's integer of seven bits, with as many more bytes as it takes."""
    if number < 127:
        return bytes((number,))
    number -= 127
    encoded = bytearray((127,))
    while number >= 128:
        encoded.append(number % 128 | 128)
        number //= 128
    return bytes((*encoded, number))
