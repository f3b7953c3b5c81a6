-- Who may pass and how often, as Kong's plugins acl, request-size-limiting and rate-limiting (policy local) decide.
-- The counters live as long as this script, in one thread: Envoy must run with --concurrency 1.

-- The status that acl refuses with, or nil.
local function refused_by_acl(handle, plugin, consumer, authenticated)
  if not consumer or (#consumer.groups == 0 and not authenticated) then return 401, "Unauthorized" end
  local allowed = false
  for _, group in ipairs(consumer.groups) do
    for _, name in ipairs(plugin.allow) do allowed = allowed or group == name end
  end
  if not allowed then return 403, "You cannot consume this service" end
  if plugin.hide_groups_header then return nil end
  handle:headers():replace("X-Consumer-Groups", table.concat(consumer.groups, ", "))
end

-- The status that request-size-limiting refuses with, or nil. Reads the body only when its length is not announced.
local function refused_by_size(handle, plugin)
  local length = tonumber(handle:headers():get("content-length") or "")
  if not length and not handle:headers():get("upgrade") then
    local body = handle:body()
    length = body and body:length()
  end
  if not length or length <= plugin.allowed_payload_size * CONFIG.size_units[plugin.size_unit] then return nil end
  local expect = (handle:headers():get("expect") or ""):lower()
  return expect == "100-continue" and 417 or 413, "Request size limit exceeded"
end

local SECONDS = { Second = 1, Minute = 60, Hour = 3600, Day = 86400 }
local windows = {} -- of those that have not ended, the counts; by the end of the window

-- The window of fixed length that began at a multiple of it, and its end.
local function window_of(period, now)
  for ending in pairs(windows) do
    if ending <= now then windows[ending] = nil end
  end
  local ends = now - now % SECONDS[period] + SECONDS[period]
  windows[ends] = windows[ends] or {}
  return windows[ends], ends
end

-- The limits of a plugin and what is left of them, by period, and a period that is used up.
local function usage_of(plugin, identifier, now)
  local usage, exceeded = {}, nil
  for period, seconds in pairs(SECONDS) do
    local limit = plugin[period:lower()]
    if limit then
      local window, ends = window_of(period, now)
      local key = plugin.scope .. "\0" .. identifier .. "\0" .. period
      local remaining = limit - (window[key] or 0)
      usage[period] = { limit = limit, remaining = remaining, window = window, key = key, ends = ends, seconds = seconds }
      if remaining <= 0 then exceeded = period end
    end
  end
  return usage, exceeded
end

-- Adds the headers that say what is left of the limits; the tightest period also without its name.
local function add_headers(kept, usage, exceeded, now)
  local tightest
  for period, use in pairs(usage) do
    local counts = exceeded == nil or exceeded == period
    use.remaining = math.max(0, counts and use.remaining - 1 or use.remaining)
    kept.headers["X-RateLimit-Limit-" .. period] = tostring(use.limit)
    kept.headers["X-RateLimit-Remaining-" .. period] = tostring(use.remaining)
    local longer = tightest and use.remaining == tightest.remaining and use.seconds > tightest.seconds
    if not tightest or use.remaining < tightest.remaining or longer then tightest = use end
  end
  local reset = tostring(math.max(1, tightest.ends - now))
  kept.headers["RateLimit-Limit"] = tostring(tightest.limit)
  kept.headers["RateLimit-Remaining"] = tostring(tightest.remaining)
  kept.headers["RateLimit-Reset"] = reset
  kept.headers["Retry-After"] = exceeded and reset or nil
end

-- The status that rate-limiting refuses with, or nil; what passes is counted.
local function refused_by_rate(handle, plugin, consumer, address, kept)
  local identifier = plugin.limit_by == "consumer" and consumer and consumer.id or address
  local now = os.time()
  local usage, exceeded = usage_of(plugin, identifier, now)
  if not plugin.hide_client_headers then add_headers(kept, usage, exceeded, now) end
  if exceeded then return plugin.error_code, plugin.error_message end
  for _, use in pairs(usage) do use.window[use.key] = (use.window[use.key] or 0) + 1 end
end
