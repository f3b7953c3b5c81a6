-- Finds out who asks, as Kong's plugins jwt, key-auth and basic-auth do when each names an anonymous consumer: the
-- first credential that holds wins, and a request without one goes on as the anonymous consumer.

local function token_of(handle, plugin)
  local found, count = {}, 0
  local function note(token)
    if token and token ~= "" and not found[token] then
      found[token], count = true, count + 1
    end
  end
  for _, name in ipairs(plugin.uri_param_names) do
    for _, value in ipairs(query_values(handle, name)) do note(value) end
  end
  for _, name in ipairs(plugin.header_names) do
    note((handle:headers():get(name) or ""):match("%s*[Bb]earer%s+(.+)"))
  end
  return count == 1 and next(found) or nil
end

-- Envoy's jwt_authn has checked the signatures; its clock skew cannot be zero, so the expiry is checked here.
local function by_jwt(handle, plugin)
  local token = token_of(handle, plugin)
  if not token then return nil end
  local verified = handle:streamInfo():dynamicMetadata():get("envoy.filters.http.jwt_authn") or {}
  for provider, credential in pairs(CONFIG.jwt_secrets) do
    local claims = verified[provider]
    if claims and claims.iss == credential.key then
      local expires = claims.exp
      if not plugin.verify_exp or (type(expires) == "number" and expires > os.time()) then
        return credential.consumer, credential.key, token
      end
    end
  end
end

local function key_of(handle, plugin, name)
  local headers = handle:headers()
  if plugin.key_in_header and headers:get(name) then
    return headers:getNumValues(name) == 1 and headers:get(name) or nil, true
  end
  local values = plugin.key_in_query and query_values(handle, name) or {}
  return #values == 1 and values[1] or nil, #values > 0
end

local function by_key(handle, plugin)
  for _, name in ipairs(plugin.key_names) do
    local key, given = key_of(handle, plugin, name)
    if given then
      if key and plugin.hide_credentials then
        remove_from_query(handle, name)
        handle:headers():remove(name)
      end
      local credential = key and CONFIG.keyauth_credentials[key]
      if not credential then return nil end
      return credential.consumer, credential.id
    end
  end
end

local function basic_of(handle, plugin, name)
  local given = handle:headers():get(name)
  local decoded_pair = given and from_base64(given:match("%s*[Bb]asic%s*(.+)") or "*")
  if plugin.hide_credentials then
    handle:headers():remove(name)
  end
  if decoded_pair then return decoded_pair:match("([^:]+):(.*)") end
end

local function by_basic(handle, plugin)
  for _, name in ipairs({ "proxy-authorization", "authorization" }) do
    local username, password = basic_of(handle, plugin, name)
    local credential = username and CONFIG.basicauth_credentials[username]
    if credential then
      if credential.password ~= password then return nil end
      return credential.consumer, username
    end
  end
end

local KINDS = { { "jwt", by_jwt }, { "key-auth", by_key }, { "basic-auth", by_basic } }

local function set_or_remove(headers, name, value)
  if value then headers:replace(name, value) else headers:remove(name) end
end

-- The consumer, and whether a credential vouches for it; nil on a route that asks for none. Keeps a verified token.
local function identify(handle, plugins, kept)
  local anonymous, consumer, credential
  for _, kind in ipairs(KINDS) do
    local plugin = plugins[kind[1]]
    if plugin and not consumer then
      anonymous = plugin.anonymous
      consumer, credential, kept.token = kind[2](handle, plugin)
    end
  end
  if not (consumer or anonymous) then return nil end
  local found = CONFIG.consumers[consumer or anonymous]
  local headers = handle:headers()
  headers:replace("X-Consumer-ID", found.id)
  headers:replace("X-Consumer-Username", found.username)
  set_or_remove(headers, "X-Consumer-Custom-ID", found.custom_id)
  set_or_remove(headers, "X-Credential-Identifier", credential)
  set_or_remove(headers, "X-Anonymous-Consumer", not credential and "true" or nil)
  return found, credential ~= nil
end
