-- Finds out who asks, as Kong's plugins jwt, key-auth and basic-auth do when each names an anonymous consumer: the
-- first credential that holds wins, and a request without one goes on as the anonymous consumer.

-- Envoy's jwt_authn has checked the signatures; its clock skew cannot be zero, so the expiry is checked here.
local function by_jwt(handle, plugin)
  local token = (handle:headers():get("authorization") or ""):match("[Bb]earer%s+(.+)")
  if not token or not token:find("^[%w_.-]+$") then return nil end
  local verified = handle:streamInfo():dynamicMetadata():get("envoy.filters.http.jwt_authn") or {}
  for provider, credential in pairs(CONFIG.jwt_secrets) do
    local claims = verified[provider]
    if claims and claims.iss == credential.key then
      local holds = type(claims.exp) == "number" and claims.exp > os.time()
      if holds or #plugin.claims_to_verify == 0 then return credential.consumer, credential.key, token end
    end
  end
end

local function by_key(handle, plugin)
  local headers = handle:headers()
  for _, name in ipairs(plugin.key_names) do
    local key = headers:get(name)
    if key then
      local credential = headers:getNumValues(name) == 1 and CONFIG.keyauth_credentials[key] or {}
      return credential.consumer, credential.id
    end
  end
end

local function by_basic(handle, plugin)
  for _, name in ipairs({ "proxy-authorization", "authorization" }) do
    local encoded = (handle:headers():get(name) or ""):match("%s*[Bb]asic%s*(.+)") or ""
    local username, password = (from_base64(encoded) or ""):match("([^:]+):(.*)")
    if plugin.hide_credentials then handle:headers():remove(name) end
    local credential = CONFIG.basicauth_credentials[username or ""]
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
  local identity = CONFIG.consumers[consumer or anonymous]
  local headers = handle:headers()
  headers:replace("X-Consumer-ID", identity.id)
  headers:replace("X-Consumer-Username", identity.username)
  set_or_remove(headers, "X-Consumer-Custom-ID", identity.custom_id)
  set_or_remove(headers, "X-Credential-Identifier", credential)
  set_or_remove(headers, "X-Anonymous-Consumer", not credential and "true" or nil)
  return identity, credential ~= nil
end
