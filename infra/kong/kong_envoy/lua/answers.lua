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

local GRPC = { -- what Kong makes of a status for a gRPC client: the code, and its name as the message
  [400] = { 3, "InvalidArgument" }, [401] = { 16, "Unauthenticated" }, [403] = { 7, "PermissionDenied" },
  [404] = { 5, "NotFound" }, [429] = { 8, "ResourceExhausted" }, [500] = { 13, "Internal" },
}

local function names_grpc(handle)
  return (handle:headers():get("content-type") or ""):find("application/grpc", 1, true) == 1
end

local function speaks_http2(handle)
  return handle:streamInfo():protocol() == "HTTP/2"
end

-- Ends the request; without a message the answer has no body. `envoy_on_response` adds the headers that are remembered.
local function answer(handle, kept, status, message)
  remember(handle, kept)
  local headers, body = { [":status"] = tostring(status) }, ""
  if names_grpc(handle) and speaks_http2(handle) then
    local code, name = unpack(GRPC[status] or GRPC[status >= 500 and 500 or 400])
    headers["content-type"], headers["grpc-status"], headers["grpc-message"] = "application/grpc", tostring(code), name
  elseif message then
    headers["content-type"] = "application/json; charset=utf-8"
    body = string.format('{\n  "message":"%s",\n  "request_id":"%s"\n}', message, kept.id)
  end
  handle:respond(headers, body)
end

-- What the plugin response-transformer does: what it adds must not have been there before it removes anything.
local function transform_answer(headers, plugin)
  local missing = {}
  for _, added in ipairs(plugin.add.headers or {}) do
    if not headers:get(added.name) then missing[#missing + 1] = added end
  end
  for _, name in ipairs(plugin.remove.headers or {}) do headers:remove(name) end
  for _, added in ipairs(missing) do headers:replace(added.name, added.value) end
end

function envoy_on_response(handle)
  local kept = handle:streamInfo():dynamicMetadata():get(STORE)
  if not kept then return end
  local headers, plugins = handle:headers(), CONFIG.routes[handle:metadata():get("route") or ""] or {}
  for name, value in pairs(kept.headers) do headers:replace(name, value) end
  if plugins.cors then
    -- The edge's own word does not count, and caches must keep the answers to different sites apart.
    if not kept.headers["Access-Control-Allow-Origin"] then headers:remove("Access-Control-Allow-Origin") end
    headers:add("Vary", "Origin")
  end
  if plugins["response-transformer"] then transform_answer(headers, plugins["response-transformer"]) end
end
