/**
 * Generates the types of a project. In: metadata of the server. Out: the text of a module that exports `Project`.
 *
 * The text is the same for the same metadata: names are sorted by code point, and every name is a quoted string. Names
 * and descriptions of the project occur only in quoted strings and comments, and cannot end them. The module has no
 * imports. The command `terrane codegen` of the program writes the same text from the files of a project
 * (`runtime/codegen`).
 *
 * In strings, characters of the Unicode categories Cc, Cf, Zl and Zp are escaped. In comments, runs of them and of
 * white space become a space, the end of a comment is split, and `@` is escaped, so that no comment contains a compiler
 * directive.
 */
import type { Cube, Dimension, Measure, Metric } from "./wire.js";

/** The metadata that types are generated from. A document without metrics has no metrics. */
export interface ProjectMetadata {
  cubes: readonly Cube[];
  metrics?: readonly Metric[];
}

const HEADER = [
  "// Generated from a Terrane project. Do not edit.",
  "// The types of a project, for `Client<Project>` of `@terrane/client`.",
  "",
];
/** The longest comment, in characters. */
const LONGEST_COMMENT = 200;
const COUNTS: readonly string[] = ["count", "count_distinct", "count_distinct_approx"];
const ANY_VALUE = "string | number | boolean | null";
const DIMENSION_TYPES: Record<Dimension["type"], string> = {
  string: "string | null",
  number: "number | null",
  time: "string | null",
  boolean: "boolean | null",
  geo: "string | null",
};

const VALUE_TYPES: Record<string, string | undefined> = DIMENSION_TYPES;

/** Returns the module of a project. */
export function generateProject({ cubes, metrics = [] }: ProjectMetadata): string {
  const lines = [
    ...HEADER,
    "export interface Project {",
    ...indent([
      ...block(
        "cubes",
        sorted(cubes).flatMap((cube) => [...comment(cube), ...block(quote(cube.name), cubeLines(cube))]),
      ),
      ...block(
        "metrics",
        sorted(metrics).flatMap((metric) => property(metric, "number | null")),
      ),
    ]),
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

function cubeLines({ measures, dimensions, segments }: Cube): string[] {
  const times = sorted(dimensions).filter((dimension) => dimension.granularities.length > 0);
  return [
    ...block(
      "measures",
      sorted(measures).flatMap((measure) => property(measure, measureType(measure))),
    ),
    ...block(
      "dimensions",
      sorted(dimensions).flatMap((item) => property(item, DIMENSION_TYPES[item.type] ?? ANY_VALUE)),
    ),
    ...block(
      "granularities",
      times.map((time) => `${quote(time.name)}: ${union(time.granularities)};`),
    ),
    `segments: ${union([...segments].sort(byCodePoint))};`,
  ];
}

/**
 * Returns the type of a measure. Counts are never null; minima and maxima have the type of their column. The server
 * sends times as strings.
 */
function measureType({ type, value_type: valueType }: Measure): string {
  if (COUNTS.includes(type)) return "number";
  if (type !== "min" && type !== "max") return "number | null";
  return VALUE_TYPES[valueType ?? ""] ?? ANY_VALUE;
}

interface Described {
  name: string;
  title?: string | null;
  description?: string | null;
}

function property(item: Described, type: string): string[] {
  return [...comment(item), `${quote(item.name)}: ${type};`];
}

function block(name: string, lines: string[]): string[] {
  return lines.length === 0 ? [`${name}: {};`] : [`${name}: {`, ...indent(lines), "};"];
}

function indent(lines: string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

function union(names: readonly string[]): string {
  return names.length === 0 ? "never" : names.map(quote).join(" | ");
}

/** Returns a string literal. Invisible characters and line terminators are escaped. */
function quote(text: string): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const escape = (character: string) => character.split("").map(escapeUnit).join("");
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escape);
}

/** Returns a comment with the title and the description on one line, which contains neither a comment end nor a tag. */
function comment({ title, description }: Described): string[] {
  const parts = [title, description].map((text) => (typeof text === "string" ? spaced(text) : ""));
  const characters = Array.from(parts.filter((part) => part !== "").join(": "));
  if (characters.length === 0) return [];
  const isLong = characters.length > LONGEST_COMMENT;
  const line = isLong ? `${characters.slice(0, LONGEST_COMMENT).join("")}…` : characters.join("");
  return [`/** ${line.replaceAll("*/", "* /").replaceAll("@", "\\@")} */`];
}

/** Returns the words of `text` with one space between them. */
function spaced(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

function sorted<T extends { name: string }>(items: readonly T[]): T[] {
  return [...items].sort((left, right) => byCodePoint(left.name, right.name));
}

function byCodePoint(left: string, right: string): number {
  const [a, b] = [Array.from(left, codePoint), Array.from(right, codePoint)];
  const index = a.findIndex((point, position) => point !== b[position]);
  return index < 0 ? a.length - b.length : a[index]! - (b[index] ?? -1);
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}
