-- Answers clients as Kong does: kong.response.error, and the headers that Kong adds on the way back.
-- CONFIG, rendered in front of this file, holds what kong.yaml says.

local STORE = "kong"

local function random_hex()
  local source = assert(io.open("/dev/urandom", "rb"))
  local bytes = source:read(16)
  source:close()
  return (bytes:gsub(".", function(char) return string.format("%02x", char:byte()) end))
end

-- A random UUID, RFC 9562 version 4.
local function uuid()
  local hex = random_hex()
  local variant = string.format("%x", 8 + tonumber(hex:sub(17, 17), 16) % 4)
  return (hex:gsub("^(........)(....).(...).(...)", "%1-%2-4%3-" .. variant .. "%4-"))
end

-- Keeps a request's id, and the headers to add to its answer.
local function remember(handle, kept)
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set(STORE, "request_id", kept.id)
  metadata:set(STORE, "headers", kept.headers)
end

-- Ends the request. `envoy_on_response` adds the headers that are remembered.
local function answer(handle, kept, status, message)
  remember(handle, kept)
  local body = string.format('{\n  "message":"%s",\n  "request_id":"%s"\n}', message, kept.id)
  handle:respond({ [":status"] = tostring(status), ["content-type"] = "application/json; charset=utf-8" }, body)
end

function envoy_on_response(handle)
  local kept = handle:streamInfo():dynamicMetadata():get(STORE)
  for name, value in pairs(kept and kept.headers or {}) do
    handle:headers():replace(name, value)
  end
end
