-- Reads what a header holds.

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- The bytes that a base64 text stands for (RFC 4648), or nil when it is none. What follows a `=` counts for nothing, as
-- for nginx.
local function from_base64(text)
  local bits, count, bytes = 0, 0, {}
  text = text:match("^[^=]*")
  if #text % 4 == 1 then return nil end
  for char in text:gmatch(".") do
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
