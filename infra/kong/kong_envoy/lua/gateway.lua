-- Takes a request through the plugins of its route in Kong's order: correlation-id, cors, the credentials,
-- request-size-limiting, acl, rate-limiting, request-transformer, request-termination. Answers meet response-transformer.

local function correlate(handle, plugin, kept)
  local sent = handle:headers():get(plugin.header_name)
  local id = sent ~= nil and sent ~= "" and sent or uuid()
  handle:headers():replace(plugin.header_name, id)
  if plugin.echo_downstream then kept.headers[plugin.header_name] = id end
end

local function transform(handle, plugin, kept)
  local headers = handle:headers()
  for _, name in ipairs(plugin.remove.headers or {}) do headers:remove(name) end
  local claims = kept.token and kept.token:match("%.(.-)%.") -- the middle part of the token that was verified
  for _, added in ipairs(plugin.add.headers or {}) do
    if not headers:get(added.name) then headers:add(added.name, added.value or claims or added.claims_or) end
  end
end

-- What Kong tells the upstream about the client, whatever the client says itself. Envoy sets X-Forwarded-Proto.
local function describe(handle, kept, address)
  local headers = handle:headers()
  local authority = headers:get(":authority") or ""
  local forwarded_for = headers:get("x-forwarded-for")
  headers:replace("X-Forwarded-For", forwarded_for and forwarded_for .. ", " .. address or address)
  headers:replace("X-Real-IP", address)
  headers:replace("X-Forwarded-Host", (authority:gsub(":%d+$", "")))
  headers:replace("X-Forwarded-Path", (headers:get(":path"):gsub("%?.*$", "")))
  headers:replace("X-Forwarded-Port", handle:streamInfo():downstreamLocalAddress():match("(%d+)$"))
  headers:replace("X-Kong-Request-Id", kept.id)
  headers:remove("X-Forwarded-Prefix")
  headers:remove("x-envoy-external-address")
end

-- The status and message with which a plugin of the route ends the request, or nil.
local function refusal(handle, plugins, kept, address)
  if plugins["correlation-id"] then correlate(handle, plugins["correlation-id"], kept) end
  local two = (handle:headers():get("authorization") or ""):find(",") -- Envoy has joined the lines; nginx refuses two
  if two then return 400, "Bad request" end
  if plugins.cors and share(handle, plugins.cors, kept) then return 200 end
  local consumer, authenticated = identify(handle, plugins, kept)
  local size, acl = plugins["request-size-limiting"], plugins.acl
  local rate = consumer and consumer.plugins["rate-limiting"] or plugins["rate-limiting"]
  local status, message
  if size then status, message = refused_by_size(handle, size) end
  if not status and acl then status, message = refused_by_acl(handle, acl, consumer, authenticated) end
  if not status and rate then status, message = refused_by_rate(handle, rate, consumer, address, kept) end
  local ends = not status and consumer and consumer.plugins["request-termination"]
  if ends then return ends.status_code, ends.message end
  return status, message
end

-- The status and message with which Kong answers what is no gRPC, and asks for gRPC's route; nil for others.
local function refused_as_no_grpc(handle, kept)
  if not names_grpc(handle) then return 415, "Non-gRPC request matched gRPC route" end
  if speaks_http2(handle) then return nil end
  kept.headers["Upgrade"] = "HTTP/2"
  return 426, "Please use HTTP2 protocol"
end

local function serve(handle, kept)
  local route = handle:metadata():get("route") or ""
  local plugins = CONFIG.routes[route]
  if not plugins then return answer(handle, kept, 404, "no Route matched with those values") end
  if CONFIG.grpc_routes[route] then
    local status, message = refused_as_no_grpc(handle, kept)
    if status then return answer(handle, kept, status, message) end
  end
  local address = handle:streamInfo():downstreamDirectRemoteAddress():gsub(":%d+$", "")
  describe(handle, kept, address)
  local status, message = refusal(handle, plugins, kept, address)
  if status then return answer(handle, kept, status, message) end
  if plugins["request-transformer"] then transform(handle, plugins["request-transformer"], kept) end
  remember(handle, kept)
end

-- Envoy passes a request on when a script fails: nobody may come in that way.
function envoy_on_request(handle)
  local id = random_hex()
  local kept = { id = id, headers = { ["X-Kong-Request-Id"] = id } }
  local served, failure = pcall(serve, handle, kept)
  if not served then
    handle:logErr("the request is refused, because the script failed: " .. tostring(failure))
    answer(handle, kept, 500, "An unexpected error occurred")
  end
end
