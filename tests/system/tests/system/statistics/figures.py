"""Prints the figures that NumPy and hand-written SQL compute for the flights. The tests compare with them.

    /tmp/venv/bin/pip install numpy duckdb
    /tmp/venv/bin/python figures.py            # from this folder
"""
import duckdb
import numpy as np

con = duckdb.connect()
con.execute("create view f as select * from read_parquet('../../../../../examples/flights/data/flights.parquet')")
rows = con.execute("select cast(time_hour as date), count(*) from f group by 1 order by 1").fetchall()
days, counts = [str(day) for day, _ in rows], np.array([count for _, count in rows], float)
first = days.index("2013-11-01")
history, points = counts[first - 100 : first], counts[first:]
z = (points - history.mean()) / history.std()
print("z_score", history.mean(), history.std())
print([(days[first + at], counts[first + at], float(z[at])) for at in range(len(z)) if abs(z[at]) > 2.5])
print("iqr", np.quantile(history, [0.25, 0.5, 0.75]))
low, middle, high = np.quantile(history, [0.25, 0.5, 0.75])
outside = (points < low - 1.5 * (high - low)) | (points > high + 1.5 * (high - low))
print([days[first + at] for at in range(len(z)) if outside[at]])
at = np.arange(-100, len(points)) % 7
places = [np.median(history[at[:100] == place]) for place in range(7)]
mad = np.median([abs(history[day] - places[at[day]]) for day in range(100)])
raw = [0.6745 * (points[day] - places[at[100 + day]]) / mad for day in range(len(points))]
print("seasonal", mad, [(days[first + day], float(raw[day])) for day in range(len(raw)) if abs(raw[day]) > 30])

delays = np.array([row[0] for row in con.execute("select dep_delay from f where dep_delay is not null").fetchall()], float)
distance = delays - delays.mean()
low, high = np.quantile(delays, [0.25, 0.75])
print("delays", len(delays), delays.mean(), delays.std(), (distance**3).mean() / (distance**2).mean() ** 1.5)
print(np.quantile(delays, [0.25, 0.5, 0.75, 0.9, 0.95, 0.99]), np.histogram(delays, bins=20)[0].tolist())
for k in (1.5, 3.0):
    print(k, ((delays < low - k * (high - low)) | (delays > high + k * (high - low))).sum())
print(con.execute("select dest, count(*) from f group by 1 order by 2 desc, 1 limit 3").fetchall())
print(con.execute("select count(*), count(dep_delay), count(distinct dest) from f where origin = 'JFK'").fetchall())
