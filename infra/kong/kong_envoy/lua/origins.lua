-- Says which sites' pages may read an answer, as Kong's plugin cors does.

-- The origin to name in the answer, or nil. Kong names an only one whoever asks.
local function allowed_origin(plugin, sent)
  if #plugin.origins == 1 then return plugin.origins[1] end
  for _, origin in ipairs(plugin.origins) do
    if origin == sent then return origin end
  end
end

-- Remembers the headers for the answer. True when the request is a browser's preflight, which is answered with them.
local function share(handle, plugin, kept)
  local headers, added = handle:headers(), kept.headers
  local sent = headers:get("origin")
  added["Access-Control-Allow-Origin"] = allowed_origin(plugin, sent)
  added["Access-Control-Allow-Credentials"] = plugin.credentials and "true" or nil
  if headers:get(":method") == "OPTIONS" and sent and headers:get("access-control-request-method") then
    added["Access-Control-Allow-Headers"] = table.concat(plugin.headers, ",")
    added["Access-Control-Allow-Methods"] = table.concat(plugin.methods, ",")
    added["Access-Control-Max-Age"] = plugin.max_age and tostring(plugin.max_age)
    return true
  end
  if #plugin.exposed_headers > 0 then
    added["Access-Control-Expose-Headers"] = table.concat(plugin.exposed_headers, ",")
  end
  return false
end
