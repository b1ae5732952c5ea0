/** Generated project types: determinism, names of any kind, and texts that must stay inert. */
import assert from "node:assert/strict";
import { test } from "node:test";
import ts from "typescript";
import { generateProject } from "@terrane/client/codegen";
import type { ProjectMetadata } from "@terrane/client/codegen";

const NAMES = [
  'a": never }; } process.exit(); //',
  "*/ process.exit() /*",
  "`${process.exit()}`",
  "line\nbreak",
  "separator\u2028\u2029",
  "\u202ereversed",
  "quote'\"\\",
  "__proto__",
  "constructor",
  "1st",
  "class",
  "",
  "ä\u{1f600}",
  "\ud800",
  "tag\u{e0041}",
];

/** Returns the metadata of a project in which every text is one of `texts`. */
function metadata(texts: readonly string[]): ProjectMetadata {
  const member = (name: string) => ({
    name,
    cube: "c",
    title: name,
    description: name,
    format: null,
    certification: null,
  });
  const measures = texts.map((name) => ({ ...member(name), type: "count" as const, drill_members: [] }));
  const dimensions = texts.map((name) => ({
    ...member(name),
    type: "time" as const,
    primary_key: false,
    granularities: ["day", "month"] as ("day" | "month")[],
  }));
  const cubes = texts.map((name) => ({ ...member(name), measures, dimensions, segments: [...texts], joins: [] }));
  const metrics = texts.map((name) => ({ ...member(name), type: "ratio" as const, time_grain: null, cubes: [] }));
  return { cubes, metrics };
}

function parse(text: string) {
  const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true });
  return { file: ts.createSourceFile("project.ts", text, ts.ScriptTarget.Latest), problems: diagnostics ?? [] };
}

test("any text stays inside of a string or a comment", () => {
  const text = generateProject(metadata(NAMES));
  const { file, problems } = parse(text);
  assert.deepEqual(
    problems.map((problem) => problem.messageText),
    [],
  );
  assert.deepEqual(
    file.statements.map((statement) => ts.SyntaxKind[statement.kind]),
    ["InterfaceDeclaration"],
  );
  assert.doesNotMatch(text, /[\u2028\u2029\u202e\u{e0041}]/u);
});

test("names keep their value", () => {
  const { file } = parse(generateProject(metadata(NAMES)));
  const project = file.statements[0] as ts.InterfaceDeclaration;
  const cubes = (project.members[0] as ts.PropertySignature).type as ts.TypeLiteralNode;
  const names = cubes.members.map((member) => (member.name as ts.StringLiteral).text);
  assert.deepEqual(new Set(names), new Set(NAMES));
});

test("comments cannot direct the compiler", () => {
  const text = generateProject(metadata(["@ts-expect-error", "@ts-ignore", "@deprecated"]));
  assert.doesNotMatch(text, /\/\*\* @/);
  assert.deepEqual(parse(text).problems, []);
});

test("the order of the metadata has no influence", () => {
  const project = metadata(NAMES);
  const reversed = metadata([...NAMES].reverse());
  assert.equal(generateProject(project), generateProject(reversed));
});

test("names are sorted by code point", () => {
  const text = generateProject(metadata(["\u{10000}", "\uffff", "b", "a", "B", "ab"]));
  const segments = /segments: (.*);/.exec(text)![1];
  assert.equal(segments, '"B" | "a" | "ab" | "b" | "\uffff" | "\u{10000}"');
});

test("types follow the metadata", () => {
  const [cube] = metadata(["x"]).cubes;
  const measures = (["count", "sum", "min", "count_distinct_approx"] as const).map((type) => ({
    ...cube!.measures[0]!,
    name: type,
    type,
  }));
  const earliest = { ...cube!.measures[0]!, name: "earliest", type: "min" as const, value_type: "time" };
  const dimensions = (["string", "number", "boolean", "geo"] as const).map((type) => ({
    ...cube!.dimensions[0]!,
    name: type,
    type,
    granularities: [],
  }));
  const text = generateProject({
    cubes: [{ ...cube!, measures: [...measures, earliest], dimensions, segments: [] }],
  });
  const lines = text
    .split("\n")
    .filter((line) => !line.includes("/**"))
    .map((line) => line.trim());
  assert.deepEqual(lines.slice(6, -5), [
    "measures: {",
    '"count": number;',
    '"count_distinct_approx": number;',
    '"earliest": string | null;',
    '"min": string | number | boolean | null;',
    '"sum": number | null;',
    "};",
    "dimensions: {",
    '"boolean": boolean | null;',
    '"geo": string | null;',
    '"number": number | null;',
    '"string": string | null;',
    "};",
    "granularities: {};",
    "segments: never;",
  ]);
});

test("long descriptions are shortened", () => {
  const text = generateProject(metadata(["x".repeat(5000)]));
  const comments = text.split("\n").filter((line) => line.includes("/**"));
  assert.ok(comments.every((line) => line.length < 230 && line.endsWith("… */")));
});

test("empty parts of a comment are left out", () => {
  const text = generateProject({ cubes: [], metrics: [{ ...metadata(["m"]).metrics![0]!, title: "\u200b\n", description: "d\te" }] });
  assert.match(text, /\/\*\* d e \*\//);
});

test("the last character of a long comment is no half of an escape", () => {
  const text = generateProject(metadata([`${"x".repeat(199)}@y`, `${"x".repeat(199)}*/`]));
  assert.match(text, /x\\@… \*\//);
  assert.deepEqual(parse(text).problems, []);
});
