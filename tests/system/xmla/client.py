"""Reads a project and runs DAX with netas-xmla-with-dax, and prints the received values."""

import json
import sys

from olap.xmla import xmla
from olap.xmla.interfaces import XMLAException

base, key = sys.argv[1:]
source = xmla.XMLAProvider().connect(location=f"{base}/api/v1/dax/xmla", auth=("anybody", key))


def rows(statement: str) -> list:
    answer = source.Execute(statement, Catalog=catalog.CATALOG_NAME)
    return [list(row) for row in answer.rows]


source.BeginSession()
[catalog] = source.getCatalogs()
cube = catalog.getCube("flights")
dimension = cube.getDimension("[airlines]")
hierarchy = cube.getHierarchy("[airlines].[name]")
members = hierarchy.getMembers()
everything = hierarchy.getMember("[airlines].[name].[All]")
try:
    rows("EVALUATE nothing")
    refused = None
except XMLAException as error:
    refused = str(error)
count = rows('EVALUATE SUMMARIZECOLUMNS(airlines[name], "n", flights[count]) ORDER BY [n] DESC')
found = {
    "catalog": catalog.CATALOG_NAME,
    "cubes": [each.CUBE_NAME for each in catalog.getCubes()],
    "dimension": dimension.DIMENSION_CAPTION,
    "levels": [level.LEVEL_NAME for level in hierarchy.getLevels()],
    "members": len(members),
    "children": len(everything.getChildren()),
    "measures": [measure.MEASURE_NAME for measure in cube.getMeasures()],
    "properties": len(source.getProperties()),
    "rows": count,
    "refused": refused,
}
source.EndSession()
print(json.dumps(found, default=str))
