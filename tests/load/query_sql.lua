-- For wrk: POST /api/v1/query/sql with a query that changes each time, so that nothing can be remembered.
local carriers = { "UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX" }
local number = 0

request = function()
  number = number + 1
  local carrier = carriers[number % #carriers + 1]
  local body = string.format(
    '{"metrics":["flights.count","flights.average_departure_delay"],"dimensions":["airlines.name"],' ..
    '"time_dimensions":[{"dimension":"flights.time_hour","granularity":"month","date_range":["2013-01-01","2013-06-30"]}],' ..
    '"filters":[{"dimension":"flights.carrier","operator":"equals","value":"%s"},' ..
    '{"dimension":"flights.distance","operator":"gt","value":%d}],"limit":50}',
    carrier, number)
  return wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, body)
end
