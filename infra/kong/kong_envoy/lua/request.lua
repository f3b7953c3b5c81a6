-- Reads and changes the query string of a request, without touching the arguments that nobody asked about.

local function decoded(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- The values of an argument in the order of the query; an argument without `=` has no value and does not count.
local function query_values(handle, wanted)
  local values = {}
  local query = handle:headers():get(":path"):match("%?(.*)$") or ""
  for argument in query:gmatch("[^&]+") do
    local name, value = argument:match("^([^=]*)=(.*)$")
    if name and decoded(name) == wanted then values[#values + 1] = decoded(value) end
  end
  return values
end

local function remove_from_query(handle, unwanted)
  local path, query = handle:headers():get(":path"):match("^([^?]*)%?(.*)$")
  if not path then return end
  local kept = {}
  for argument in query:gmatch("[^&]+") do
    if decoded(argument:match("^[^=]*")) ~= unwanted then kept[#kept + 1] = argument end
  end
  handle:headers():replace(":path", #kept > 0 and path .. "?" .. table.concat(kept, "&") or path)
end

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- The bytes that a base64 text stands for (RFC 4648), or nil when it is none.
local function from_base64(text)
  local bits, count, bytes = 0, 0, {}
  for char in text:gsub("=+%s*$", ""):gmatch(".") do
    local place = BASE64:find(char, 1, true)
    if not place then return nil end
    bits, count = bits * 64 + place - 1, count + 6
    if count >= 8 then
      count = count - 8
      bytes[#bytes + 1] = string.char(math.floor(bits / 2 ^ count))
      bits = bits % 2 ^ count
    end
  end
  return table.concat(bytes)
end
