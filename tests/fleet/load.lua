-- SPDX-License-Identifier: MIT
--
-- tests/fleet/load.lua - for wrk: answers of different sizes, each looked at; at the end the requests, and
-- those lost, by the class of the error.
local threads = {}
local n = 0
wrong = 0

function setup(thread)
	table.insert(threads, thread)
end

function request()
	n = (n * 37 + 11) % 4001
	return wrk.format("GET", "/" .. n)
end

function response(status, headers, body)
	local wanted = tonumber(body:match("^(%d+)\n"))
	if status == 200 and (not wanted or #body ~= #tostring(wanted) + 1 + wanted) then
		wrong = wrong + 1
	end
end

function done(summary, latency, requests)
	local e = summary.errors
	local all = 0
	for _, thread in ipairs(threads) do
		all = all + thread:get("wrong")
	end
	print("requests " .. summary.requests)
	print("lost connect " .. e.connect)
	print("lost read " .. e.read)
	print("lost write " .. e.write)
	print("lost timeout " .. e.timeout)
	print("lost status " .. e.status)
	print("lost wrong " .. all)
	print("p99_us " .. latency:percentile(99))
end
