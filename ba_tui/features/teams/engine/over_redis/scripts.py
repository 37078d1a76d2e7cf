"""The scripts of the bus on a Redis server. ARGV[1] is checked before each of them: see ``server``.

A topic is a stream; ``open`` counts, for each of its entries, the groups that have not acknowledged it. An entry that
all have acknowledged is removed, so that a topic is as large as what waits in it, and nothing else is ever trimmed.
"""

from __future__ import annotations

KEEP = 7 * 86_400
"""Seconds after which the server drops what nobody used any more."""
KNOWN = 86_400
"""Seconds for which the server knows which messages it was sent."""

PUBLISH = f"""
-- KEYS: stream, sequences, sent, groups, open. ARGV: sender, body, least sequence, given sequence, most, newest
local known = redis.call('GET', KEYS[3])
if known then
    local at = string.find(known, ' ')
    return {{tonumber(string.sub(known, 1, at - 1)), string.sub(known, at + 1)}}
end
local newest, groups = tonumber(ARGV[7]), redis.call('SCARD', KEYS[4])
if newest == 0 and redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[6]) then return {{-1, ''}} end
local last = math.max(tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '0'), tonumber(ARGV[4]))
local sequence = tonumber(ARGV[5])
if sequence == 0 then sequence = last + 1 end
redis.call('HSET', KEYS[2], ARGV[2], math.max(last, sequence))
redis.call('EXPIRE', KEYS[2], {KEEP})
redis.call('EXPIRE', KEYS[4], {KEEP})
local entry = ''
if newest == 0 or groups > 0 then
    entry = redis.call('XADD', KEYS[1], '*', 'm', ARGV[3], 's', sequence)
    redis.call('EXPIRE', KEYS[1], {KEEP})
end
if newest > 0 then
    redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', newest)
else
    redis.call('HSET', KEYS[5], entry, math.max(groups, 1))
    redis.call('EXPIRE', KEYS[5], {KEEP})
    redis.call('SET', KEYS[3], sequence .. ' ' .. entry, 'EX', {KNOWN})
end
return {{sequence, entry}}
"""

JOIN = f"""
-- KEYS: stream, groups. ARGV: group, whether it must miss nothing
if ARGV[3] == '0' and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then return 0 end
local from = '$'
if ARGV[3] == '1' or redis.call('SCARD', KEYS[2]) == 0 then from = '0' end
-- It fails for a group that is still there.
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[2], from, 'MKSTREAM')
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], {KEEP})
redis.call('EXPIRE', KEYS[1], {KEEP})
return 1
"""

SETTLE = """
-- KEYS: stream, open, dead. ARGV: group, entry, dead letter or nothing, most dead letters
local settled = 0
if redis.call('EXISTS', KEYS[1]) == 1 then settled = redis.call('XACK', KEYS[1], ARGV[2], ARGV[3]) end
if settled == 1 then
    if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 and redis.call('HINCRBY', KEYS[2], ARGV[3], -1) <= 0 then
        redis.call('XDEL', KEYS[1], ARGV[3])
        redis.call('HDEL', KEYS[2], ARGV[3])
    end
    if ARGV[4] ~= '' then
        redis.call('LPUSH', KEYS[3], ARGV[4])
        redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
    end
end
return settled
"""

LETTERS = """
-- ARGV: pattern of keys, most of each. Returns key and dead letter of each, the newest first
local found, cursor = {}, '0'
repeat
    local page = redis.call('SCAN', cursor, 'MATCH', ARGV[2], 'COUNT', 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do
        for _, letter in ipairs(redis.call('LRANGE', key, 0, tonumber(ARGV[3]) - 1)) do
            table.insert(found, {key, letter})
        end
    end
until cursor == '0'
return found
"""

CLAIM = """
-- KEYS: stream. ARGV: group, consumer, milliseconds, most. Returns entry, body, sequence, times of each
local claimed = redis.call('XAUTOCLAIM', KEYS[1], ARGV[2], ARGV[3], ARGV[4], '0-0', 'COUNT', ARGV[5])[2]
local found = {}
for _, each in ipairs(claimed) do
    local held = redis.call('XPENDING', KEYS[1], ARGV[2], each[1], each[1], 1)[1]
    table.insert(found, {each[1], each[2][2], each[2][4], held and held[4] or 1})
end
return found
"""

RENEW = """
-- KEYS: stream. ARGV: group, consumer, entry
local held = redis.call('XPENDING', KEYS[1], ARGV[2], ARGV[4], ARGV[4], 1)[1]
if held and held[2] == ARGV[3] then
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, ARGV[4], 'JUSTID')
    return 1
end
return 0
"""

LEAVE = """
-- KEYS: stream, groups. ARGV: group, consumer, milliseconds, whether nothing is kept for the group
if ARGV[5] == '1' then
    redis.call('SREM', KEYS[2], ARGV[2])
    return redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[2])
end
local held = redis.call('XPENDING', KEYS[1], ARGV[2], '-', '+', 10000, ARGV[3])
for _, each in ipairs(held) do
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, each[1], 'IDLE', ARGV[4], 'JUSTID')
end
if #held == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], ARGV[3]) end
return #held
"""

OPEN = """
-- KEYS: open. ARGV: entries. Returns 1 for each that some group has not acknowledged
local found = {}
for at = 2, #ARGV do table.insert(found, redis.call('HEXISTS', KEYS[1], ARGV[at])) end
return found
"""

FIND = "return redis.call('GET', KEYS[1])"

PUT = "return redis.call('SET', KEYS[1], ARGV[2])"

FIRST = f"""
-- KEYS: record. ARGV: response. Returns what was written first
redis.call('SET', KEYS[1], ARGV[2], 'NX', 'EX', {KEEP})
return redis.call('GET', KEYS[1])
"""

BEGIN = f"""
-- KEYS: mark. ARGV: member. Returns whose mark it was
local before = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2], 'EX', {KEEP})
return before
"""

DROP = "return redis.call('DEL', KEYS[1])"

ITEMS = """
-- KEYS: items. ARGV: key, or nothing for all
if ARGV[2] then
    local one = redis.call('HGET', KEYS[1], ARGV[2])
    return one and {one} or {}
end
return redis.call('HVALS', KEYS[1])
"""

WRITE = f"""
-- KEYS: items. ARGV: key, version, item. Returns what is there when it is not the version before
local now = redis.call('HGET', KEYS[1], ARGV[2])
-- A signature may stand in front of an item.
local version = now and cjson.decode(string.sub(now, string.find(now, '{{', 1, true) or 1)).version or 0
if version ~= tonumber(ARGV[3]) - 1 then return now or 'none' end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
redis.call('EXPIRE', KEYS[1], {KEEP})
return false
"""
