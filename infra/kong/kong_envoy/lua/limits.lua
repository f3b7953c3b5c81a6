-- Who may pass and how often, as Kong's plugins acl, request-size-limiting and rate-limiting (policy local) decide.
-- The counters live as long as this script, in one thread: Envoy must run with --concurrency 1.

local function in_any_group(consumer, allowed)
  for _, group in ipairs(consumer.groups) do
    for _, each in ipairs(allowed) do
      if group == each then return true end
    end
  end
  return false
end

-- The status that acl refuses with, or nil.
local function refused_by_acl(handle, plugin, consumer, authenticated)
  if not consumer or (#consumer.groups == 0 and not authenticated) then return 401, nil end
  if not in_any_group(consumer, plugin.allow) then return 403, "You cannot consume this service" end
  if not plugin.hide_groups_header then
    handle:headers():replace("X-Consumer-Groups", table.concat(consumer.groups, ", "))
  end
end

-- The status that request-size-limiting refuses with, or nil. Reads the body only when its length is not announced.
local function refused_by_size(handle, plugin)
  local length = tonumber(handle:headers():get("content-length") or "")
  if not length and not handle:headers():get("upgrade") then
    local body = handle:body()
    length = body and body:length()
  end
  if not length or length <= plugin.bytes then return nil end
  local expect = (handle:headers():get("expect") or ""):lower()
  return expect == "100-continue" and 417 or 413, "Request size limit exceeded"
end

local SECONDS = { Second = 1, Minute = 60, Hour = 3600, Day = 86400 }
local MANY = 10000
local counters, counted = {}, 0

local function forget_past(now)
  counted = 0
  for key, counter in pairs(counters) do
    if counter.ends <= now then counters[key] = nil else counted = counted + 1 end
  end
end

-- The counter of a window of fixed length that began at a multiple of it.
local function counter_of(scope, identifier, period, now)
  local key = scope .. "\0" .. identifier .. "\0" .. period
  local counter = counters[key]
  if not counter or counter.ends <= now then
    if not counter then counted = counted + 1 end
    counter = { count = 0, ends = now - now % SECONDS[period] + SECONDS[period] }
    counters[key] = counter
    if counted > MANY then forget_past(now) end
  end
  return counter
end

local function usage_of(plugin, identifier, now)
  local usage, exceeded = {}, nil
  for period, limit in pairs(plugin.limits) do
    local counter = counter_of(plugin.scope, identifier, period, now)
    usage[period] = { limit = limit, counter = counter, remaining = limit - counter.count }
    if usage[period].remaining <= 0 then exceeded = period end
  end
  return usage, exceeded
end

-- The headers that tell a client where it stands; the tightest period also without its name.
local function tell(kept, usage, exceeded, now)
  local tightest
  for period, each in pairs(usage) do
    local counts = exceeded == nil or exceeded == period
    local remaining = math.max(0, counts and each.remaining - 1 or each.remaining)
    kept.headers["X-RateLimit-Limit-" .. period] = tostring(each.limit)
    kept.headers["X-RateLimit-Remaining-" .. period] = tostring(remaining)
    local longer = tightest and SECONDS[period] > tightest.seconds
    if not tightest or remaining < tightest.remaining or (remaining == tightest.remaining and longer) then
      local reset = math.max(1, each.counter.ends - now)
      tightest = { limit = each.limit, remaining = remaining, seconds = SECONDS[period], reset = reset }
    end
  end
  kept.headers["RateLimit-Limit"] = tostring(tightest.limit)
  kept.headers["RateLimit-Remaining"] = tostring(tightest.remaining)
  kept.headers["RateLimit-Reset"] = tostring(tightest.reset)
  kept.headers["Retry-After"] = exceeded and tostring(tightest.reset) or nil
end

-- The status that rate-limiting refuses with, or nil; what passes is counted.
local function refused_by_rate(handle, plugin, consumer, address, kept)
  local identifier = plugin.limit_by == "consumer" and consumer and consumer.id or address
  local now = os.time()
  local usage, exceeded = usage_of(plugin, identifier, now)
  if not plugin.hide_client_headers then tell(kept, usage, exceeded, now) end
  if exceeded then return plugin.error_code, plugin.error_message end
  for _, each in pairs(usage) do
    each.counter.count = each.counter.count + 1
  end
end
